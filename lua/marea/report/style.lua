-- The page's style: system fonts, one column of text, figures with their tables beside them where
-- there is room; light and dark by what the reader prefers, light on paper.

return [[
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --panel: #f5f5f1; --ink: #1c2126; --muted: #515a63; --grid: #dcdcd6;
  --link: #1a5fb4; --good: #1d6b34; --bad: #a1221a; --gate: #9c2b1f;
  --series-1: #1a5fb4; --series-2: #b5480c; --series-3: #2b7a3f; --series-4: #7d3c98;
  --series-5: #826400; --series-6: #0b7285; --series-7: #a61e4d; --series-8: #495057;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --panel: #1d2125; --ink: #e7e7e2; --muted: #aab2b9; --grid: #363d44;
    --link: #86b9f2; --good: #84d39b; --bad: #f5a097; --gate: #f08d80;
    --series-1: #86b9f2; --series-2: #f0a26b; --series-3: #84d39b; --series-4: #cfa3ee;
    --series-5: #dfc05f; --series-6: #67cddd; --series-7: #f08aae; --series-8: #bcc4cb;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0 auto; max-width: 78rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1, h2 { line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; }
h1 { margin: 0; font-size: 2rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 0.5rem; font-size: 1.3rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
a:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.eyebrow { margin: 0 0 0.25rem; color: var(--muted); font-size: 0.9rem; }
.summary { margin: 0.5rem 0 0; max-width: 44rem; font-size: 1.1rem; }
.lead { margin: 0 0 1rem; max-width: 44rem; }
.left-out {
  margin: 1.5rem 0 0; padding: 0.6rem 0.9rem; border-left: 3px solid var(--gate);
  background: var(--panel);
}
nav { margin: 1.5rem 0 0; padding: 0.6rem 0; border: solid var(--grid); border-width: 1px 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; margin: 0; padding: 0; }
nav li { list-style: none; }
section { margin-top: 3rem; }
figure { margin: 0; min-width: 0; max-width: 48rem; }
svg { display: block; width: 100%; height: auto; overflow: visible; color: var(--ink); }
svg.narrow { display: none; }
.pair { display: grid; gap: 1.5rem; margin: 0 0 1.5rem; }
.columns { display: grid; gap: 1.5rem 3rem; align-items: start; }
.scroll { max-width: 100%; overflow-x: auto; margin-bottom: 1.5rem; }
.pair .scroll { margin-bottom: 0; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
.unseen { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
caption { padding: 0 0 0.4rem; color: var(--muted); text-align: left; }
th, td { padding: 0.25rem 1.1rem 0.25rem 0; text-align: left; vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
th.number, td.number { text-align: right; }
thead th { border-bottom: 1px solid var(--muted); vertical-align: bottom; }
tbody th { font-weight: 400; white-space: nowrap; }
td.number { white-space: nowrap; }
tbody tr + tr > * { border-top: 1px solid var(--grid); }
.mark { white-space: nowrap; font-weight: 600; }
.mark.good { color: var(--good); }
.mark.bad { padding: 0 0.35em; background: var(--bad); color: var(--paper); }
.mark.note { color: var(--muted); font-weight: 400; }
pre {
  margin: 0; padding: 0.9rem 1.1rem; overflow-x: auto; border: 1px solid var(--grid);
  background: var(--panel); font-size: 0.875rem; line-height: 1.6;
}
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer {
  margin-top: 3.5rem; padding-top: 0.8rem; border-top: 1px solid var(--grid); color: var(--muted);
  font-size: 0.875rem;
}
@media (min-width: 66rem) {
  .pair { grid-template-columns: minmax(0, 43rem) minmax(20rem, 1fr); gap: 2.5rem; }
  .columns { grid-template-columns: repeat(2, max-content); }
}
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.6rem; }
  .prose tbody th { white-space: normal; }
  th, td { padding-right: 0.8rem; }
  svg.wide { display: none; }
  svg.narrow { display: block; }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --panel: #fff; --ink: #000; --muted: #3f474e; --grid: #cfcfc9;
    --link: #000; --good: #1d6b34; --bad: #a1221a; --gate: #9c2b1f;
    --series-1: #1a5fb4; --series-2: #b5480c; --series-3: #2b7a3f; --series-4: #7d3c98;
    --series-5: #826400; --series-6: #0b7285; --series-7: #a61e4d; --series-8: #495057;
  }
  @page { margin: 16mm 15mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; }
  section { margin-top: 1.8rem; }
  h2, .lead, caption { break-after: avoid; }
  .lead { break-inside: avoid; }
  figure, tr, pre { break-inside: avoid; }
  table { font-size: 8pt; }
  th, td { padding-right: 0.7rem; }
  .pair { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1rem; }
  .columns { grid-template-columns: repeat(2, max-content); }
  svg.wide { display: block; }
  svg.narrow { display: none; }
  .scroll, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
}
]]
