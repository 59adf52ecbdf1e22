(() => {
'use strict';
// Parts that are ready were here before others of the page came (`stepcast serve`).
const all = (selector, of = document) => Array.from(of.querySelectorAll(selector)).filter(one => !one.closest('[data-ready]'));
for (const button of all('button[hidden]')) button.hidden = false;

// Dark and light: as the system has it until somebody chooses.
const root = document.documentElement;
for (const button of all('button.theme')) {
  button.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });
}

// Tables: a click sorts, the next one turns around.
const value = cell => {
  if (!cell) return '';
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const text = cell.firstChild ? cell.textContent.replace(/copy$/, '').trim() : '';
  const number = Number(text.replace(/,/g, ''));
  return text !== '' && !Number.isNaN(number) ? number : text;
};
const compare = (a, b) => {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'number') return -1;
  if (typeof b === 'number') return 1;
  return a < b ? -1 : a > b ? 1 : 0;
};
const sort = heading => {
  const table = heading.closest('table'), body = table.tBodies[0];
  const up = heading.getAttribute('aria-sort') ? heading.getAttribute('aria-sort') === 'descending' : heading.className.includes('word');
  for (const other of all('th', table)) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const column = heading.cellIndex;
  const rows = Array.from(body.rows).map((row, at) => ({row, at, key: value(row.cells[column])}));
  rows.sort((a, b) => (up ? 1 : -1) * compare(a.key, b.key) || a.at - b.at);
  body.append(...rows.map(one => one.row));
};
for (const table of all('.stepcast table')) {
  if (table.tBodies[0].rows.length < 2) continue;
  for (const heading of all('th', table)) {
    heading.classList.add('sorts');
    heading.tabIndex = 0;
    heading.addEventListener('click', () => sort(heading));
    heading.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(heading); }
    });
  }
}

// Long tables: rows that hold a text, and what is left as CSV.
for (const table of all('.stepcast table')) {
  const rows = Array.from(table.tBodies[0].rows), box = table.closest('.scroll');
  if (rows.length < 8 || !box) continue;
  const tools = document.createElement('div'), filter = document.createElement('input'), save = document.createElement('button');
  tools.className = 'table-tools';
  filter.type = 'search';
  filter.placeholder = 'filter rows';
  filter.setAttribute('aria-label', 'filter rows');
  filter.addEventListener('input', () => {
    const wanted = filter.value.toLowerCase().split(' ').filter(Boolean);
    for (const row of rows) row.hidden = !wanted.every(word => row.textContent.toLowerCase().includes(word));
  });
  save.type = 'button';
  save.textContent = 'CSV';
  save.addEventListener('click', () => {
    const text = cell => {
      const own = cell.textContent.replace(/cop(y|ied)$/, '').trim(), plain = own.replace(/,/g, '');
      return plain !== '' && !Number.isNaN(Number(plain)) ? plain : /[",\n]/.test(own) ? `"${own.replace(/"/g, '""')}"` : own;
    };
    const lines = [table.tHead.rows[0], ...table.tBodies[0].rows].filter(row => !row.hidden);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([lines.map(row => Array.from(row.cells).map(text).join(',') + '\n').join('')], {type: 'text/csv'}));
    link.download = 'table.csv';
    link.click();
    URL.revokeObjectURL(link.href);
  });
  tools.append(filter, save);
  box.before(tools);
}

// What scrolls is reached by keys, too.
for (const box of all('.stepcast .scroll')) if (!box.querySelector('[tabindex], button')) box.tabIndex = 0;

// Flags to the clipboard; pages of a folder have no clipboard in some browsers.
const copy = async text => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
};
for (const button of all('button.copy')) {
  button.addEventListener('click', async () => {
    await copy(button.dataset.copy);
    button.textContent = 'copied';
    setTimeout(() => { button.textContent = 'copy'; }, 1200);
  });
}

// What is pointed at says what it is.
const tip = document.createElement('div');
tip.className = 'tip';
tip.setAttribute('role', 'status');
(document.querySelector('.stepcast') || document.body).append(tip);
const show = (event, text) => {
  tip.textContent = text;
  tip.style.display = text ? 'block' : 'none';
  if (!text) return;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + 'px';
};
// A picture is one stop of the Tab key, arrows go from mark to mark.
for (const plot of all('.plot')) {
  const heading = plot.closest('section, details')?.querySelector('h2, summary');
  if (heading) plot.querySelector('svg').setAttribute('aria-label', heading.textContent);
  if (plot.classList.contains('schedule')) continue;
  const marks = all('title', plot).map(title => {
    const text = title.textContent, of = title.parentNode;
    title.remove();
    of.setAttribute('role', 'img');
    of.setAttribute('aria-label', text);
    of.addEventListener('mousemove', event => show(event, text));
    of.addEventListener('mouseleave', event => show(event, ''));
    of.addEventListener('focus', () => {
      const box = of.getBoundingClientRect();
      show({clientX: box.left, clientY: box.bottom - 12}, text);
    });
    of.addEventListener('blur', event => show(event, ''));
    return of;
  });
  marks.forEach((mark, at) => {
    mark.setAttribute('tabindex', at === 0 ? 0 : -1);
    mark.addEventListener('keydown', event => {
      const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      const next = by && marks[at + by];
      if (!next) return;
      event.preventDefault();
      mark.setAttribute('tabindex', -1);
      next.setAttribute('tabindex', 0);
      next.focus();
    });
  });
}

// A click on a point of a plane marks the row of the same name, and shows it.
const pick = dot => {
  const name = dot.getAttribute('aria-label').split(': ')[0];
  const cell = Array.from(document.querySelectorAll('.stepcast td')).find(one => one.firstChild?.nodeType === 3 && one.firstChild.data.trim() === name);
  for (const row of document.querySelectorAll('.picked')) row.classList.remove('picked');
  if (!cell) return;
  const row = cell.parentNode;
  row.hidden = false;
  for (let box = row.closest('details'); box; box = box.parentNode.closest('details')) box.open = true;
  row.classList.add('picked');
  row.scrollIntoView({block: 'center'});
};
for (const dot of all('.plot .dot')) {
  dot.addEventListener('click', () => pick(dot));
  dot.addEventListener('keydown', event => { if (event.key === 'Enter') pick(dot); });
}

// Schedules: wheel with Ctrl or Shift zooms, dragging moves, a double click shows all again.
for (const plot of all('.schedule')) {
  const outer = plot.querySelector('svg'), bars = plot.querySelector('svg.bars');
  const numbers = plot.querySelector('.numbers'), ticks = plot.querySelector('.ticks');
  const units = bars.viewBox.baseVal.width, height = bars.viewBox.baseVal.height;
  const left = bars.x.baseVal.value, width = bars.width.baseVal.value, top = bars.y.baseVal.value;
  const scale = Number(outer.dataset.scale), gap = (outer.dataset.gap || '').split(' ').map(Number);
  const names = all('text.row', outer).reduce((to, text) => { to[text.dataset.row] = text.textContent; return to; }, {});
  const named = (tag, attributes, text) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  let list;
  const marks = () => {
    if (list) return list;
    list = [];
    for (const path of all('path[data-row]', bars)) {
      const n = path.dataset.n ? path.dataset.n.split(' ') : [];
      let i = 0;
      for (const bar of path.getAttribute('d').matchAll(/M(\d+) ([\d.]+)h(\d+)/g)) {
        list.push({from: +bar[1], to: +bar[1] + +bar[3], y: +bar[2], thick: +path.getAttribute('stroke-width'), row: path.dataset.row, part: path.dataset.part, n: n[i++], look: path.getAttribute('class')});
      }
    }
    return list;
  };
  const time = at => (gap.length > 2 && at > gap[0] ? (Math.max(gap[0], at - gap[1])) / scale + gap[2] : at / scale);
  const place = ms => (gap.length > 2 && ms * scale > gap[0] ? (ms - gap[2]) * scale + gap[1] : ms * scale);
  let from = 0, span = units;
  const draw = () => {
    bars.setAttribute('viewBox', `${from} 0 ${span} ${height}`);
    const x = at => left + (at - from) / span * width;
    numbers.replaceChildren();
    for (const bar of marks()) {
      if (bar.n === undefined || bar.to < from || bar.from > from + span) continue;
      const wide = (bar.to - bar.from) / span * width, middle = x((bar.from + bar.to) / 2);
      if (wide > 7 * bar.n.length + 3 && middle > left && middle < left + width) numbers.append(named('text', {class: 'in ' + bar.look, x: middle, y: top + bar.y + 4}, bar.n));
    }
    const low = time(from), high = time(from + span), rough = (high - low) / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(f => f * power).find(f => f >= rough);
    ticks.replaceChildren();
    for (let at = Math.ceil(low / step); at <= high / step; ++at) {
      const px = x(place(at * step));
      if (px < left - 1 || px > left + width + 1) continue;
      ticks.append(named('line', {class: 'grid', x1: px, x2: px, y1: top, y2: top + height}), named('text', {class: 'tick', x: px, y: top + height + 15}, Number((at * step).toPrecision(7)).toLocaleString('en')));
    }
  };
  const set = (to, wide) => {
    span = Math.min(units, Math.max(units / 400, wide));
    from = Math.min(units - span, Math.max(0, to));
    draw();
  };
  const at = event => {
    const box = bars.getBoundingClientRect();
    return {x: from + (event.clientX - box.left) / box.width * span, y: (event.clientY - box.top) / box.height * height, per: span / box.width};
  };
  outer.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const where = at(event).x, wide = span * (event.deltaY + event.deltaX > 0 ? 1.25 : 0.8);
    set(where - (where - from) / span * Math.min(units, wide), wide);
  }, {passive: false});
  let grip;
  outer.addEventListener('pointerdown', event => { grip = {x: event.clientX, from}; outer.setPointerCapture(event.pointerId); outer.classList.add('moving'); });
  outer.addEventListener('pointerup', () => { grip = undefined; outer.classList.remove('moving'); });
  outer.addEventListener('pointermove', event => {
    const here = at(event);
    if (grip && span < units) { set(grip.from - (event.clientX - grip.x) * here.per, span); return; }
    const bar = marks().find(one => here.x >= one.from && here.x <= one.to && Math.abs(here.y - one.y) <= one.thick / 2);
    if (!bar) { show(event, ''); return; }
    const start = time(bar.from), end = time(bar.to);
    show(event, `${names[bar.row] || 'row ' + bar.row}: ${bar.part}${bar.n === undefined ? '' : ' of micro-batch ' + bar.n}, ${start.toPrecision(5)} to ${end.toPrecision(5)} ms (${(end - start).toPrecision(3)} ms)`);
  });
  outer.addEventListener('pointerleave', event => show(event, ''));
  outer.addEventListener('dblclick', () => set(0, units));
  outer.setAttribute('tabindex', 0);
  outer.addEventListener('keydown', event => {
    const by = {ArrowRight: 0.2, ArrowLeft: -0.2}[event.key];
    if (by && span < units) { event.preventDefault(); set(from + by * span, span); }
  });
  const tools = document.createElement("p");
  tools.className = 'small';
  for (const [text, factor] of [['+', 0.5], ['\u2212', 2], ['all', 0]]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    button.className = 'zoom';
    button.setAttribute('aria-label', text === 'all' ? 'show all' : text === '+' ? 'zoom in' : 'zoom out');
    button.addEventListener('click', () => factor ? set(from + span / 2 - span * factor / 2, span * factor) : set(0, units));
    tools.append(button, ' ');
  }
  tools.append('Shift and the wheel zoom, dragging and arrow keys move.');
  plot.after(tools);
}

// Paper shows what is folded.
window.onbeforeprint = () => { for (const one of document.querySelectorAll('details')) one.open = true; };
})();
