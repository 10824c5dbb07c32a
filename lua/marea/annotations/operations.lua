---@meta _

-- Made from the records of the operations (engine/grad/ops) by marea.annotate, and never by hand:
-- `marea .ci/annotate.lua` makes it anew.

---@class marea.tensor
local tensor = {}

--- The sum of two tensors, element by element.
--- self is a: any shape.
---@param b marea.tensor the shape of a, or of its last axes; repeated over the others
---@return marea.tensor result the shape of a
function tensor:add(b) end

---@class marea.add_layer_norm_options
---@field epsilon? number added to the variance (default 1e-05)

--- The sum of two tensors, and its layer_norm, in one pass: the values of add and of layer_norm, in
--- less time. Gives the norm first, the sum second.
--- self is a: [..., columns].
---@param b marea.tensor the shape of a, or of its last axes; repeated over the others
---@param w marea.tensor [columns]
---@param bias? marea.tensor [columns]
---@param options? marea.add_layer_norm_options
---@return marea.tensor result the norm, the shape of a
---@return marea.tensor second a + b, the shape of a
function tensor:add_layer_norm(b, w, bias, options) end

--- Index from 0 of the largest element of each row, the first of equals, as i32.
--- self is x: [..., columns]. No gradient.
---@return marea.tensor result i32, the shape of x without its last axis
function tensor:argmax() end

---@class marea.attention_options
---@field heads integer number of heads; divides columns
---@field lengths marea.tensor i64 [sequences] rows of each sequence
--- i64 [sequences] first row of each, from 0; without it they lie end to end
---@field starts? marea.tensor
---@field causal? boolean whether a row sees only itself and earlier rows (default true)

--- Scaled dot-product attention within packed sequences: no sequence sees another; rows that no
--- sequence covers become 0.
--- self is q: [rows, columns] queries.
---@param k marea.tensor [rows, columns] keys
---@param v marea.tensor [rows, columns] values
---@param options marea.attention_options
---@return marea.tensor result [rows, columns]
function tensor:attention(k, v, options) end

--- Tensors one after the other along the first axis.
--- self is x: [rows, ...].
---@param others marea.tensor[] a list; shapes as x, but for the first extent
---@return marea.tensor result the shape of x, with the sum of the first extents
function tensor:concatenate(others) end

--- Cross-entropy of each row with its target; 0 where the target is -100.
--- self is x: [rows, classes] logits.
---@param targets marea.tensor i32 [rows] classes from 0; -100 is ignored
---@return marea.tensor result [rows]; f32 where x is bf16
function tensor:cross_entropy(targets) end

---@class marea.dropout_options
---@field probability number of an element to become 0; at least 0, below 1
---@field seed integer of the run
---@field layer integer number of this dropout within the model
---@field update integer number of the update
---@field ids marea.tensor i64 [rows] sequence of each row
---@field positions marea.tensor i32 [rows] position of each row within its sequence

--- Sets elements to 0 at random and divides the others by 1 - probability. The draw depends on
--- seed, layer, update, sequence id, position and column only.
--- self is x: [..., columns].
---@param options marea.dropout_options
---@return marea.tensor result the shape of x
function tensor:dropout(options) end

--- The row of w at each id; gradients of repeated ids add up.
--- self is w: [vocabulary, columns].
---@param ids marea.tensor i32 [rows] ids from 0 to vocabulary - 1
---@return marea.tensor result [rows, columns]
function tensor:embedding(ids) end

--- The Gaussian error linear unit in its tanh form, element by element.
--- self is x: any shape.
---@return marea.tensor result the shape of x
function tensor:gelu() end

---@class marea.layer_norm_options
---@field epsilon? number added to the variance (default 1e-05)

--- Each row of the last axis less its mean, over its standard deviation, times w plus b.
--- self is x: [..., columns].
---@param w marea.tensor [columns]
---@param b? marea.tensor [columns]
---@param options? marea.layer_norm_options
---@return marea.tensor result the shape of x
function tensor:layer_norm(w, b, options) end

--- Multiplies the last axis by a matrix and adds a bias: x w^T + b.
--- self is x: [..., in].
---@param w marea.tensor [out, in]
---@param b? marea.tensor [out]
---@return marea.tensor result [..., out]
function tensor:linear(w, b) end

--- Two projections with gelu between them, gelu(x up^T + up_b) down^T + down_b, as one operation:
--- the values of linear, gelu and linear, in less time.
--- self is x: [..., in].
---@param up marea.tensor [hidden, in]
---@param up_b? marea.tensor [hidden]
---@param down marea.tensor [out, hidden]
---@param down_b? marea.tensor [out]
---@return marea.tensor result [..., out]
function tensor:linear_gelu_linear(up, up_b, down, down_b) end

--- The product of two matrices.
--- self is a: [m, k].
---@param b marea.tensor [k, n]
---@return marea.tensor result [m, n]
function tensor:matmul(b) end

--- The product of two tensors, element by element.
--- self is a: any shape.
---@param b marea.tensor the shape of a, or of its last axes; repeated over the others
---@return marea.tensor result the shape of a
function tensor:multiply(b) end

--- The larger of x and 0, element by element; its gradient at 0 is 0.
--- self is x: any shape.
---@return marea.tensor result the shape of x
function tensor:relu() end

--- The same elements under another shape; shares memory with x.
--- self is x: any shape.
---@param shape integer[] the new extents; their product is the number of elements of x
---@return marea.tensor result the new shape
function tensor:reshape(shape) end

---@class marea.rms_norm_options
---@field epsilon? number added to the mean square (default 1e-05)

--- Each row of the last axis over its root mean square, times w.
--- self is x: [..., columns].
---@param w marea.tensor [columns]
---@param options? marea.rms_norm_options
---@return marea.tensor result the shape of x
function tensor:rms_norm(w, options) end

--- Every element times one number.
--- self is x: any shape.
---@param alpha number the factor
---@return marea.tensor result the shape of x
function tensor:scale(alpha) end

---@class marea.self_attention_options
---@field heads integer number of heads; divides columns
---@field lengths marea.tensor i64 [sequences] rows of each sequence
--- i64 [sequences] first row of each, from 0; without it they lie end to end
---@field starts? marea.tensor
---@field causal? boolean whether a row sees only itself and earlier rows (default true)

--- Attention whose queries, keys and values are the three thirds of each row of x.
--- self is x: [rows, 3 columns]: queries, keys, values.
---@param options marea.self_attention_options
---@return marea.tensor result [rows, columns]
function tensor:self_attention(options) end

--- x / (1 + exp(-x)), element by element.
--- self is x: any shape.
---@return marea.tensor result the shape of x
function tensor:silu() end

--- Consecutive rows of the first axis; shares memory with x.
--- self is x: [rows, ...].
---@param first integer first row, from 1
---@param count integer number of rows
---@return marea.tensor result [count, ...]
function tensor:slice(first, count) end

--- Exponentials over their sum along the last axis: each row adds up to 1.
--- self is x: [..., columns].
---@return marea.tensor result the shape of x
function tensor:softmax() end

--- The square of the difference, element by element; not summed, not halved.
--- self is a: any shape.
---@param b marea.tensor the shape of a
---@return marea.tensor result the shape of a; f32 where a is bf16
function tensor:squared_error(b) end

--- The sum of all elements.
--- self is x: any shape.
---@return marea.tensor result [], a scalar; f32 where x is bf16
function tensor:sum() end

--- The sum of all elements, each times its weight.
--- self is x: any shape.
---@param weights marea.tensor the shape of x; f32 where x is bf16; receives no gradient
---@return marea.tensor result [], a scalar; f32 where x is bf16
function tensor:weighted_sum(weights) end
