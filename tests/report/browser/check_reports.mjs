// Opens pages of `stepcast ... --report` in a real browser and holds them to what docs/reports.md promises: no message on
// the console, no request, nothing outside its box, tables that sort, flags that are copied, a dark page.
//
//   node check_reports.mjs OUT_DIR PAGE.html...
//   node check_reports.mjs --can-run
//
// Needs puppeteer-core (or playwright-core) where NODE_PATH or a node_modules folder above has it, and a Chromium
// ($STEPCAST_CHROMIUM, else the usual names). Screenshots go to OUT_DIR. Exit code 77: nothing to test with.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const skip = why => { console.log(`skipped: ${why}`); process.exit(77); };
const require = createRequire(import.meta.url);
let puppeteer;
try {
  const module = require.resolve('puppeteer-core', {paths: [process.cwd(), ...(process.env.NODE_PATH || '').split(':').filter(Boolean)]});
  puppeteer = (await import(pathToFileURL(module))).default ?? require(module);
} catch (error) { skip(`no puppeteer-core, which ./dev test installs (${error.code})`); }
const browsers = [process.env.STEPCAST_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = browsers.find(file => file && fs.existsSync(file));
if (!executablePath) skip('no Chromium');
if (process.argv[2] === '--can-run') process.exit(0);

const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js', {paths: [...(process.env.NODE_PATH || '').split(':').filter(Boolean), process.cwd()]}), 'utf8');
const [out, ...pages] = process.argv.slice(2);
fs.mkdirSync(out, {recursive: true});
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'stepcast-browser-'));
const browser = await puppeteer.launch({executablePath, headless: true, timeout: 120000, userDataDir: profile, args: ['--no-sandbox',
  '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--force-color-profile=srgb']});
const problems = [];

// Runs in the page: texts and marks that leave their picture, and elements that leave the page.
const outside = () => {
  const found = [], wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) found.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${wide}`);
  for (const svg of document.querySelectorAll('.plot > svg')) {
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.width === 0) continue;
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        found.push(`text "${text.textContent.slice(0, 40)}" leaves its picture`);
    }
  }
  for (const one of document.querySelectorAll('.stepcast p, .stepcast h1, .stepcast h2, .stepcast pre, .stepcast dl, .stepcast ul')) {
    const own = one.getBoundingClientRect();
    if (own.right > wide + 1) found.push(`<${one.tagName.toLowerCase()}> "${one.textContent.slice(0, 30)}" leaves the page`);
  }
  return found.slice(0, 8);
};

// Runs in the page: texts on bars that can hardly be read.
const pale = () => {
  const light = colour => {
    const parts = colour.startsWith('#') ? colour.slice(1).match(/../g).map(x => parseInt(x, 16)) : colour.match(/\d+/g).map(Number);
    const [r, g, b] = parts.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Array.from(document.querySelectorAll('svg .in')).filter(text => {
    const style = getComputedStyle(text), under = style.getPropertyValue('--c').trim();
    if (!under) return false;
    const [a, b] = [light(style.fill), light(under)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map(text => text.getAttribute('class'));
};

for (const file of pages) {
  const name = path.basename(file, '.html'), tab = await browser.newPage();
  tab.setDefaultTimeout(120000);
  const say = text => problems.push(`${name}: ${text}`);
  tab.on('console', message => say(`console: ${message.text()}`));
  tab.on('pageerror', error => say(`script: ${error.message}`));
  tab.on('request', request => { if (!/^(file|data):/.test(request.url())) say(`requests ${request.url()}`); });
  await browser.defaultBrowserContext().overridePermissions('file://', ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']).catch(() => {});
  for (const width of [1280, 400]) {
    await tab.setViewport({width, height: 900});
    await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
    await tab.goto(pathToFileURL(path.resolve(file)).href, {waitUntil: 'load'});
    for (const text of await tab.evaluate(outside)) say(`${width} px: ${text}`);
    await tab.screenshot({path: path.join(out, `${name}-${width}.png`), fullPage: true});
  }
  await tab.setViewport({width: 1280, height: 900});
  await tab.goto(pathToFileURL(path.resolve(file)).href, {waitUntil: 'load'});

  // Everybody can read it: what is named, reached by keys, and dark enough, with everything unfolded.
  const reader = await browser.newPage();
  reader.setDefaultTimeout(120000);
  await reader.setBypassCSP(true);
  await reader.setViewport({width: 1280, height: 900});
  for (const scheme of ['light', 'dark']) {
    await reader.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
    await reader.goto(pathToFileURL(path.resolve(file)).href, {waitUntil: 'load'});
    await reader.evaluate(() => { for (const one of document.querySelectorAll('details')) one.open = true; });
    await reader.evaluate(axe);
    const violations = await reader.evaluate(async () => (await window.axe.run(document, {resultTypes: ['violations']})).violations
      .map(one => `${one.impact}: ${one.id}, ${one.nodes.length} times: ${one.nodes[0].html.slice(0, 120)}`));
    for (const text of violations) say(`${scheme}: ${text}`);
    const texts = await reader.evaluate(pale);
    if (texts.length) say(`${scheme}: ${texts.length} texts on bars have a contrast below 4.5: ${[...new Set(texts)].join(', ')}`);
  }
  await reader.close();

  // Arrow keys go from mark to mark and say what it is; the filter of a table leaves the rows that hold its text.
  const marks = await tab.evaluate(() => {
    const all = Array.from(document.querySelectorAll('.plot:not(.schedule)')).map(plot => Array.from(plot.querySelectorAll('[role=img]'))).find(list => list.length > 1);
    if (!all) return '';
    all[0].focus();
    all[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    const tip = document.querySelector('.tip');
    return document.activeElement === all[1] && tip.style.display === 'block' && tip.textContent === all[1].getAttribute('aria-label') ? '' : `"${tip.textContent}"`;
  });
  if (marks) say(`an arrow key does not go to the next mark: ${marks}`);
  const filtered = await tab.evaluate(() => {
    const filter = document.querySelector('.table-tools input');
    if (!filter) return '';
    const rows = Array.from(filter.parentNode.nextElementSibling.querySelectorAll('tbody tr')), wanted = rows.at(-1).cells[0].textContent.toLowerCase();
    filter.value = wanted;
    filter.dispatchEvent(new Event('input'));
    const right = rows.every(row => row.hidden !== row.textContent.toLowerCase().includes(wanted.trim().split(' ')[0]) || wanted.includes(' '));
    const some = rows.some(row => !row.hidden);
    filter.value = '';
    filter.dispatchEvent(new Event('input'));
    return right && some && rows.every(row => !row.hidden) ? '' : `"${wanted}"`;
  });
  if (filtered) say(`filtering: ${filtered}`);

  // The answer is inside, whole.
  const schema = await tab.evaluate(() => JSON.parse(document.getElementById('stepcast-json').textContent).schema);
  if (!/^stepcast\./.test(schema || '')) say('no answer as JSON inside');

  // A click on a heading of numbers sorts, a second one turns the order around.
  const sorted = await tab.evaluate(() => {
    const numbers = table => {
      const column = Array.from(table.tHead.rows[0].cells).findIndex((cell, at) => cell.className.includes('number') &&
        new Set(Array.from(table.tBodies[0].rows).map(row => row.cells[at].textContent)).size > 1);
      return column;
    };
    const table = Array.from(document.querySelectorAll('.stepcast table')).find(one => one.tBodies[0].rows.length > 2 && numbers(one) >= 0);
    if (!table) return 'no table';
    const column = numbers(table), heading = table.tHead.rows[0].cells[column];
    const values = () => Array.from(table.tBodies[0].rows).map(row => row.cells[column]).map(cell =>
      cell.dataset.v !== undefined ? Number(cell.dataset.v) : Number(cell.textContent.replace(/,/g, ''))).filter(value => !Number.isNaN(value));
    heading.click();
    const down = values(), falls = down.every((value, i) => i === 0 || down[i - 1] >= value);
    heading.click();
    const up = values(), rises = up.every((value, i) => i === 0 || up[i - 1] <= value);
    return falls && rises ? '' : `column "${heading.textContent}" is not sorted: ${down} then ${up}`;
  });
  if (sorted) say(`sorting: ${sorted}`);

  // Flags go to the clipboard.
  const copied = await tab.evaluate(async () => {
    const button = document.querySelector('button.copy');
    if (!button) return '';
    button.click();
    await new Promise(done => setTimeout(done, 100));
    return button.textContent === 'copied' ? '' : `the button says "${button.textContent}"`;
  });
  if (copied) say(`copying: ${copied}`);

  // The schedule zooms, is dragged, says what is pointed at, and comes back.
  const schedule = await tab.$('.schedule svg.bars');
  if (schedule) {
    const view = () => tab.evaluate(() => document.querySelector('.schedule svg.bars').getAttribute('viewBox').split(' ').map(Number));
    const press = at => tab.evaluate(n => document.querySelector('.schedule').nextElementSibling.querySelectorAll('button')[n].click(), at);
    const whole = await view();
    await press(0);
    const close = await view();
    if (!(close[2] < whole[2])) say(`zooming: from ${whole} to ${close}`);
    await schedule.evaluate(one => one.scrollIntoView({block: 'center'}));
    const box = await schedule.boundingBox(), y = box.y + box.height / 2;
    await tab.mouse.move(box.x + box.width * 0.6, y);
    await tab.mouse.down();
    await tab.mouse.move(box.x + box.width * 0.4, y, {steps: 4});
    await tab.mouse.up();
    const moved = await view();
    if (!(moved[0] > close[0] && moved[2] === close[2])) say(`dragging: from ${close} to ${moved}`);
    await press(2);
    if (String(await view()) !== String(whole)) say(`showing all: ${await view()} instead of ${whole}`);
    const told = await tab.evaluate(() => {
      const bar = document.querySelector('.schedule path[data-row]'), [, x, top] = bar.getAttribute('d').match(/M(\d+) ([\d.]+)/).map(Number);
      const bars = bar.closest('svg.bars'), place = bars.getBoundingClientRect(), box = bars.viewBox.baseVal;
      const event = new PointerEvent('pointermove', {bubbles: true, clientX: place.left + (x + 1) / box.width * place.width, clientY: place.top + top / box.height * place.height});
      bars.dispatchEvent(event);
      return Array.from(document.querySelectorAll('.tip')).some(tip => tip.style.display !== 'none' && tip.textContent.includes(' ms'));
    });
    if (!told) say('pointing at a bar says nothing');
  }

  // Dark by the button, and by the system.
  const brightness = () => tab.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.querySelector('.stepcast')).backgroundColor.match(/\d+/g).map(Number);
    return (r + g + b) / 3;
  });
  const light = await brightness();
  await tab.click('button.theme');
  if (!(await brightness() < 80 && light > 200)) say('the button does not turn the page dark');
  await tab.screenshot({path: path.join(out, `${name}-dark.png`), fullPage: true});
  await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
  await tab.reload();
  if (await brightness() > 80) say('a dark system has no dark page');

  // On paper: a whole number of sheets, folded parts open, no buttons.
  await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
  await tab.pdf({path: path.join(out, `${name}.pdf`), format: 'A4', printBackground: false});
  if (fs.statSync(path.join(out, `${name}.pdf`)).size < 10000) say('the print is empty');
  await tab.emulateMediaType('print');
  const printed = await tab.evaluate(() => {
    const shown = one => getComputedStyle(one).display !== 'none' && one.getClientRects().length > 0;
    return {buttons: Array.from(document.querySelectorAll('button')).filter(shown).length, folded: document.querySelectorAll('details:not([open])').length,
      cut: Array.from(document.querySelectorAll('.scroll')).filter(one => one.scrollHeight > one.clientHeight + 2).length};
  });
  if (printed.cut) say(`${printed.cut} tables are cut off on paper`);
  if (printed.buttons) say(`${printed.buttons} buttons are printed`);
  if (printed.folded) say(`${printed.folded} parts stay folded on paper`);
  await tab.emulateMediaType('screen');

  // Without the script the same is there to read: every heading, table and picture, and no button that does nothing.
  const content = () => tab.evaluate(() => ({
    text: Array.from(document.querySelectorAll('.stepcast h1, .stepcast h2, .stepcast .verdict, .stepcast td, .stepcast dd')).map(one => one.firstChild?.textContent).join('|'),
    pictures: document.querySelectorAll('.plot > svg').length}));
  await tab.reload({waitUntil: 'load'});
  const scripted = await content();
  await tab.setJavaScriptEnabled(false);
  await tab.goto(pathToFileURL(path.resolve(file)).href, {waitUntil: 'load'});
  const plain = await content();
  if (plain.text !== scripted.text || plain.pictures !== scripted.pictures) say('without the script something is missing');
  for (const text of await tab.evaluate(outside)) say(`without the script: ${text}`);
  if (await tab.evaluate(() => Array.from(document.querySelectorAll('button')).some(one => one.getClientRects().length > 0))) say('without the script there are buttons');
  await tab.setJavaScriptEnabled(true);
  await tab.close();
}
await browser.close();
fs.rmSync(profile, {recursive: true, force: true});
for (const problem of problems) console.error(problem);
console.log(`${pages.length} pages, ${problems.length} problems; screenshots in ${out}`);
process.exit(problems.length ? 1 : 0);
