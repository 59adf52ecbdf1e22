// Opens pages of `stepcast ... --report` in a real browser and holds them to what docs/reports.md promises: no message on
// the console, no request, nothing outside its box at any width, on paper and in a notebook, tables that sort, flags that
// are copied, a dark page.
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
const jupyter = fs.readFileSync(new URL('jupyter.css', import.meta.url), 'utf8');
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

// Runs in the page: texts that leave their box, boxes on top of each other, broken words in headings, columns on the wrong
// side, and what is right of `edge`, where paper ends.
const crowded = edge => {
  const found = [], range = document.createRange();
  const name = one => `<${one.tagName.toLowerCase()}> "${one.textContent.trim().slice(0, 30)}"`;
  const rects = () => Array.from(range.getClientRects()).filter(one => one.width > 0.5);
  const walker = document.createTreeWalker(document.querySelector('.stepcast'), NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    if (!text.data.trim() || text.parentNode.closest('svg, style, .tip')) continue;
    const box = text.parentNode.closest('td, th, p, li, dt, dd, h1, h2, summary, pre, figcaption, footer');
    if (!box) continue;
    const place = box.getBoundingClientRect();
    range.selectNodeContents(text);
    if (rects().some(one => one.left < place.left - 1 || one.right > place.right + 1)) found.push(`text leaves its box: ${name(box)}`);
    if (!box.matches('th')) continue;
    for (const word of text.data.matchAll(/[^\s_-]+[_-]?/g)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set(rects().map(one => one.top)).size > 1) found.push(`a broken word: ${name(box)}`);
    }
  }
  for (const group of document.querySelectorAll('.figures, .blocks, .stepcast')) {
    const boxes = Array.from(group.children).filter(one => !one.matches('.tip')).map(one => [one, one.getBoundingClientRect()]);
    boxes.forEach(([one, a], at) => {
      for (const [other, b] of boxes.slice(at + 1)) {
        if (a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1) found.push(`${name(one)} overlaps ${name(other)}`);
      }
      if (group.matches('.figures') && a.width < 130) found.push(`a card is ${a.width} wide: ${name(one)}`);
    });
  }
  for (const cell of document.querySelectorAll('.stepcast :is(th, td):is(.number, .word)')) {
    if (cell.matches('.number') !== (getComputedStyle(cell).textAlign === 'right')) found.push(`on the wrong side: ${name(cell)}`);
    if (edge && cell.getBoundingClientRect().right > edge + 1) found.push(`beyond the paper: ${name(cell)}`);
  }
  return [...new Set(found)].slice(0, 8);
};

// Runs in the page: size, side and colours of every element, to compare a page with the same page below other style sheets.
const looks = () => Array.from(document.querySelectorAll('.stepcast, .stepcast *')).filter(one => !one.closest('svg')).map(one => {
  const style = getComputedStyle(one);
  return `<${one.tagName.toLowerCase()}> ${one.offsetWidth} x ${one.offsetHeight} ${style.textAlign.replace('start', 'left')} ${style.color} ${style.backgroundColor}`;
});

// Runs in the page: adds a text for each colour that a bar can have; limits are lines.
const addColours = () => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  document.querySelector('.stepcast').append(svg);
  for (const [, classes] of document.querySelector('style').textContent.matchAll(/((?:\.[cp]-(?!limit)[\w-]+)+)\{--c/g)) {
    const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    text.setAttribute('class', `in${classes.replaceAll('.', ' ')}`);
    svg.append(text);
  }
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
  for (const width of [1920, 1280, 390]) {
    await tab.setViewport({width, height: 900});
    await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
    await tab.goto(pathToFileURL(path.resolve(file)).href, {waitUntil: 'load'});
    await tab.evaluate(() => { for (const one of document.querySelectorAll('details')) one.open = true; });
    for (const text of [...await tab.evaluate(outside), ...await tab.evaluate(crowded)]) say(`${width} px: ${text}`);
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
    await reader.evaluate(addColours);
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

  // A click on a point of a plane marks its row. Rows of the slowest points may not be shown.
  const picked = await tab.evaluate(() => {
    const dots = Array.from(document.querySelectorAll('.plot .dot')), names = dots.map(dot => dot.getAttribute('aria-label').split(': ')[0]);
    const cells = Array.from(document.querySelectorAll('.stepcast td')).map(cell => cell.firstChild?.textContent.trim());
    const at = names.findIndex(one => cells.includes(one));
    if (at < 0) return '';
    dots[at].dispatchEvent(new MouseEvent('click', {bubbles: true}));
    const rows = document.querySelectorAll('.picked');
    return rows.length === 1 && rows[0].textContent.includes(names[at]) ? '' : `${rows.length} rows for "${names[at]}"`;
  });
  if (picked) say(`picking: ${picked}`);

  // Pages with many sections list them, and a link to a folded one opens it.
  const contents = await tab.evaluate(() => {
    const links = Array.from(document.querySelectorAll('.contents a')), heads = Array.from(document.querySelectorAll('.stepcast > section > h2, .stepcast > details > summary'));
    if (links.length !== (heads.length > 5 ? heads.length : 0)) return `${links.length} links to ${heads.length} sections`;
    const wrong = links.find((link, at) => link.textContent !== heads[at].textContent || document.querySelector(link.hash)?.parentNode !== heads[at].parentNode);
    return wrong ? `"${wrong.textContent}" leads elsewhere` : '';
  });
  if (contents) say(`contents: ${contents}`);

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
    if (!table) return '';
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
  const paper = await tab.evaluate(() => document.querySelector('.wide') ? 1031 : 703);  // A4 without margins, landscape and portrait
  await tab.setViewport({width: paper, height: 900});
  for (const text of await tab.evaluate(crowded, paper)) say(`on paper: ${text}`);
  await tab.setViewport({width: 1280, height: 900});
  await tab.emulateMediaType('screen');

  // In the output of a notebook, the styles of the notebook change nothing.
  const notebook = await browser.newPage(), whole = fs.readFileSync(file, 'utf8');
  const fragment = whole.match(/<style>[^]*?<\/style>/)[0] + whole.match(/<main[^]*<\/main>/)[0].replaceAll('<details>', '<details open>');
  const seen = [];
  for (const styles of ['.jp-RenderedHTMLCommon{padding-right:20px}', jupyter]) {
    await notebook.setViewport({width: 900, height: 900});
    await notebook.setContent(`<!DOCTYPE html><style>${styles}</style><div class="jp-ThemedContainer"><div class="jp-RenderedHTMLCommon">${fragment}</div></div>`);
    seen.push(await notebook.evaluate(looks));
  }
  for (const text of await notebook.evaluate(crowded)) say(`in a notebook: ${text}`);
  await notebook.screenshot({path: path.join(out, `${name}-notebook.png`), fullPage: true});
  const changed = seen[0].findIndex((one, at) => one !== seen[1][at]);
  if (changed >= 0) say(`in a notebook: ${seen[1][changed]} instead of ${seen[0][changed]}`);
  await notebook.close();

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
