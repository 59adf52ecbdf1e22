// Uses `stepcast serve` in a real browser as a planner does: node use_serve_in_browser.mjs ADDRESS EXPECTED.json
//
// EXPECTED holds {"traces": [file...], "folder": the folder of the traces, "replay": its step in ms, "log": a log, "list": part of the
// name of a file in the folders of the server}. Exit code 77: nothing to test with.
import fs from 'node:fs';
import {open, unreadable} from './browser.mjs';

const [address, file] = process.argv.slice(2), expected = JSON.parse(fs.readFileSync(file, 'utf8'));
const {browser, tab, problems} = await open();
const JOB = 'stepcast predict --model llama-3-8b --platform dgx-h100 --gpus 8 --gbs 64';
const ready = () => tab.waitForFunction(() => document.body.dataset.busy === '', {timeout: 120000, polling: 20});
const step = () => tab.evaluate(() => Number(document.body.dataset.step));
const said = () => tab.$eval('#said', one => one.textContent);
const command = () => tab.$eval('#command', one => one.value);
const isDim = () => tab.$eval('#answer', one => one.classList.contains('stale') && getComputedStyle(one).opacity < 0.5 && one.ariaBusy === 'true');
const check = (what, isTrue, found = '') => { if (!isTrue) problems.push(`${what}: ${JSON.stringify(found)}`); };
const type = async (id, text, ...keys) => {
  await tab.click('#' + id, {clickCount: 3});
  await tab.keyboard.type(text);
  for (const key of keys) await tab.keyboard.press(key);
};
const line = async text => {
  await tab.$eval('#command', (one, value) => { one.value = value; one.dispatchEvent(new Event('change')); }, text);
  await ready();
};
const verb = async name => {
  await tab.select('#verb', name);
  await ready();
};
// Questions are held until they are let through.
let isHeld = false, held = [];
await tab.setRequestInterception(true);
tab.on('request', request => {
  if (isHeld && request.url().includes('/api/run')) held.push(request);
  else request.continue();
});
const release = () => {
  isHeld = false;
  for (const request of held.splice(0)) request.continue().catch(() => {});
};

await tab.setViewport({width: 1280, height: 900});
await tab.goto(address, {waitUntil: 'load'});
await ready();

// 1. Work is visible and can be cancelled; the old answer is dimmed meanwhile.
isHeld = true;
await type('gpus', '16', 'Enter');
await tab.waitForSelector('#busy:not([hidden])');
check('busy', (await said()).startsWith('computing') && await isDim() && / s$/.test(await tab.$eval('#elapsed', one => one.textContent)), await said());
await tab.click('#cancel');
await ready();
check('cancelled', /Cancelled/.test(await said()) && await isDim() && await tab.$eval('#busy', one => one.hidden), await said());
check('old answer is named', (await tab.$eval('#old', one => one.textContent)).includes('on 8 x'));
release();
await line(JOB);
check('bright again', !(await isDim()), await said());

// 2. A half-typed name asks nothing; leaving the field does; the error dims the old answer.
const asked = [];
tab.on('request', request => { if (request.url().includes('/api/run')) asked.push(request.postData()); });
await tab.waitForFunction(() => document.body.dataset.advice !== '');
asked.length = 0;
await type('model', 'no-such');
await new Promise(done => setTimeout(done, 1000));
check('half-typed', asked.length === 0 && await tab.$eval('#said', one => one.className) === '', asked);
await tab.keyboard.press('Tab');
await tab.waitForFunction(() => document.getElementById('said').className === 'error');
await ready();
check('error', (await said()).includes('no-such') && await isDim(), await said());
await type('model', 'llama-3-8b', 'Enter');
await ready();
check('corrected', !(await isDim()) && (await command()) === JOB, await command());
asked.length = 0;
await type('gbs', '128');  // a pause is enough for a number
await tab.waitForFunction(() => document.getElementById('command').value.includes('128'));
await ready();
check('pause', asked.some(body => body.includes('"128"') && body.includes('html')), asked);

// 3. Answers without a page are text.
for (const [words, part] of [['models llama-3', 'llama-3-8b'], ['platforms', 'Platforms'], [`inspect ${expected.log}`, ''], [`compare ${expected.log} ${expected.log}`, '']]) {
  await line('stepcast ' + words);
  const [text, isPage] = await tab.evaluate(() => [document.getElementById('text').textContent, document.getElementById('text').hidden]);
  check(words, !(await isDim()) && (isPage ? !part : text.includes(part)), [await said(), text.slice(0, 80)]);
}

// 4. Each control exists once, and only where the verb has the flag; a verb and back loses nothing.
await line(`${JOB} --tp 2 --num-layers 16 --seq 4096`);
const ids = 'model platform gpus gbs mbs tp pp cp ep vp seq dtype framework sharding recompute sp'.split(' ');
const visible = () => tab.evaluate(all => all.filter(id => document.querySelectorAll('#' + id).length === 1 && document.getElementById(id).offsetParent !== null), ids);
check('controls', (await visible()).length === ids.length, await visible());
check('allowed', (await tab.$eval('#recompute', one => Array.from(one.list.options, option => option.value))).sort().join() === 'full,none,selective');
check('chosen', (await tab.$eval('#pp', one => one.placeholder)) === '1 (chosen)', await tab.$eval('#pp', one => one.placeholder));
const before = await step();
await verb('plan');
check('plan', (await command()).includes('--tp 2') && !(await command()).includes('--num-layers'), await command());
await verb('replay');
check('replay without traces', /replay needs traces/.test(await said()) && await isDim() && (await visible()).length === 0, [await said(), await visible()]);
await verb('predict');
check('back at predict', await step() === before, [await step(), before]);
for (const part of ['--tp 2', '--num-layers 16', '--seq 4096', '--gbs 64', '--model llama-3-8b']) check(`kept ${part}`, (await command()).includes(part), await command());
await type('recompute', 'full', 'Enter');
await ready();
check('recompute', (await command()).includes('--recompute full') && await step() > before, [await command(), await step(), before]);

// 5. Back, forward, the list of answers, and a baseline. Moves of a slider are one entry.
await line(JOB);
const first = await step();
await tab.click('#pin');
await type('gpus', '16', 'Enter');
await ready();
const second = await step(), length = await tab.evaluate(() => history.length);
const delta = await tab.$eval('#delta', one => one.innerText);
check('delta', delta.includes('Step time') && delta.includes('Memory') && delta.includes('MFU') && delta.includes(`${(100 * (second / first - 1)).toFixed(1)} %`), delta);
check('bars', (await tab.$$eval('#delta .bar i', all => all.map(one => parseFloat(one.style.width)))).length === 3);
for (const exponent of [1, 2]) {
  await tab.$eval('#x-network', (one, value) => { one.value = value; one.dispatchEvent(new Event('input')); }, exponent);
  await ready();
}
check('moves replace', await tab.evaluate(() => history.length) === length && tab.url().includes('network%3D4x'), tab.url());
await tab.goBack();
await tab.waitForFunction(value => Number(document.body.dataset.step) === value, {}, first);
await tab.goForward();
await tab.waitForFunction(() => document.getElementById('command').value.includes('network=4x'));
await ready();
await tab.$eval('#past', one => { one.open = true; });
const list = await tab.$$eval('#tried li', all => all.map(one => one.innerText));
check('list', list.length >= 4 && list.length <= 12 && list[0].includes('network=4x') && list[1].includes('--gpus 16') && list[1].includes(`${(100 * (second / first - 1)).toFixed(1)} %`), list);
await tab.click('#tried li:nth-child(3) button');
await ready();
check('clicked', await step() === first, await step());

// 6. Advice comes after the answer; its button applies the words.
await line(`${JOB} --tp 8`);
const slow = await step();
await tab.waitForFunction(() => Number(document.body.dataset.advice) > 0, {timeout: 120000});
check('answer before advice', await step() === slow);
await tab.click('#advice li button');
await ready();
check('applied', await step() < slow, [slow, await step(), await command()]);
asked.length = 0;
await tab.$eval('#x-compute', one => { one.value = 1; one.dispatchEvent(new Event('input')); });
await ready();
check('no advice for a move', await tab.$eval('#advice', one => one.hidden) && !asked.some(body => body.includes('--advice')), asked);

// 7. Files of one drop are one job; a folder, too; each can be removed.
const replayed = async what => {
  await tab.waitForFunction(() => document.getElementById('command').value.startsWith('stepcast replay'), {timeout: 120000});
  await ready();
  check(what, await step() === expected.replay, [await step(), await said(), await command()]);
  await line(JOB);
};
await tab.$eval('#files', one => { one.open = true; });
await (await tab.$('#file')).uploadFile(...expected.traces);
await replayed('files');
await (await tab.$('#folder')).uploadFile(expected.folder);
await replayed('a folder');
const devtools = await tab.createCDPSession(), data = {items: [], files: [expected.folder], dragOperationsMask: 1};
for (const kind of ['dragEnter', 'dragOver', 'drop']) await devtools.send('Input.dispatchDragEvent', {type: kind, x: 600, y: 30, data});
await replayed('a dropped folder');
const uploads = await tab.$$eval('#uploads li', all => all.length);
await tab.click('#uploads li button:last-child');
await tab.waitForFunction(count => document.querySelectorAll('#uploads li').length === count - 1, {}, uploads);
check('given', (await tab.$$eval('#given li button', all => all.map(one => one.textContent))).some(name => name.includes(expected.list)));

// A phone: the answer is on the first screen, nothing is cut off, everything has a name.
problems.push(...await unreadable(tab));
await tab.setViewport({width: 390, height: 844});
await tab.goto('about:blank');
await tab.goto(address, {waitUntil: 'load'});
await ready();
const [top, wide] = await tab.evaluate(() => [document.getElementById('said').getBoundingClientRect().top, document.documentElement.scrollWidth]);
check('phone', top < 600 && wide <= 390, [top, wide]);
problems.push(...await unreadable(tab));
await browser.close();
for (const problem of problems) console.error(problem);
console.log(`${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
