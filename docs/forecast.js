// The first page's answers, which packaging/record_answers.py recorded beside it.
(async () => {
  'use strict';
  const place = document.getElementById('forecast');
  if (!place) return;
  const reply = await fetch('recorded.json').catch(() => null);
  if (!reply || !reply.ok) return;
  const given = await reply.json();
  const choice = (label, values, first) => {
    const select = document.createElement('select'), box = document.createElement('label');
    for (const value of values) select.append(new Option(value, value, value === first, value === first));
    box.append(label + ' ', select, ' ');
    place.append(box);
    return select;
  };
  const model = choice('Model', given.models, 'llama-3-8b'), platform = choice('on', given.platforms, 'dgx-h100'), gpus = choice('GPUs', given.gpus, 8);
  const said = document.createElement('p'), command = document.createElement('pre');
  said.setAttribute('role', 'status');
  place.append(said, command);
  const number = (value, digits) => value.toLocaleString('en', {maximumFractionDigits: digits});
  const show = () => {
    const one = given.answers[[model.value, platform.value, gpus.value].join('/')];
    said.textContent = one
      ? `Step time ${number(one.step_ms, 1)} ms (p10 ${number(one.p10_ms, 1)}, p90 ${number(one.p90_ms, 1)})` +
        (one.mfu ? `, MFU ${number(100 * one.mfu, 1)} %` : '') + (one.memory ? `; memory: ${one.memory.replaceAll('_', ' ')}` : '') + `; ${given.version}`
      : 'No forecast was recorded for these.';
    command.textContent = one ? one.command : '';
    place.dataset.step = one ? one.step_ms : '';
  };
  for (const one of [model, platform, gpus]) one.addEventListener('change', show);
  show();
})();
