'use strict';
// The page of the lab: it draws each state that /events sends, and posts what the user wants.

const $ = (id) => document.getElementById(id);
const text = (el, value) => { if (el.textContent !== String(value)) el.textContent = value; };
const modeNames = { hand: 'by hand', flight: 'singleflight', guard: 'cacheguard' };
let now = null; // the newest state
let paused = false;

// --- What the user does.

async function post(path, body) {
  try {
    const headers = body ? { 'Content-Type': 'application/json' } : {};
    const response = await fetch(location.origin + path, { method: 'POST', headers, body: body && JSON.stringify(body) });
    if (!response.ok) note(await response.text());
  } catch (err) {
    note(`The lab does not answer: ${err.message}`);
  }
}
const change = (settings) => now && post('/settings', { ...now.settings, ...settings });

$('modes').addEventListener('change', (e) => change({ mode: e.target.value }));
$('callers').addEventListener('change', (e) => change({ callers: Number(e.target.value) }));
$('callers').addEventListener('input', (e) => text($('callers-out'), e.target.value));
$('late').addEventListener('change', (e) => change({ late: Number(e.target.value) }));
$('late').addEventListener('input', (e) => text($('late-out'), seconds(Number(e.target.value))));
$('hedge').addEventListener('change', (e) => change({ hedge: e.target.checked }));
$('ttl').addEventListener('change', (e) => change({ ttl: Number(e.target.value) }));
$('intend').addEventListener('change', (e) => change({ intend: e.target.checked }));
$('put').addEventListener('change', (e) => change({ put: e.target.checked }));
$('stale').addEventListener('change', (e) => change({ stale: e.target.checked }));
$('local').addEventListener('change', (e) => change({ local: e.target.checked }));
$('feed').addEventListener('change', (e) => change({ feed: e.target.checked }));
$('past').addEventListener('click', () => post('/write-past'));
$('slow').addEventListener('click', () => change({ slow: !now.settings.slow }));
$('expire').addEventListener('click', () => post('/expire'));
$('write').addEventListener('click', () => post('/write'));
$('later').addEventListener('click', () => post('/write-late'));
for (const [id, flow] of [['freeze', 'frozen'], ['down', 'down']]) {
  $(id).addEventListener('click', () => post('/redis/' + (now.redis === flow ? 'up' : flow)));
}
$('instances').addEventListener('click', (e) => {
  const button = e.target.closest('button');
  if (button) post(`/instances/${button.dataset.number}/${button.dataset.do}`);
});
$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', paused);
});

// --- What the page shows.

let noted = 0;
function note(line, time = Date.now()) {
  const p = document.createElement('p');
  p.dataset.at = new Date(time).toTimeString().slice(0, 8);
  p.textContent = line;
  $('journal').prepend(p);
  while ($('journal').childElementCount > 50) $('journal').lastChild.remove();
}

function drawSettings(s) {
  for (const input of document.querySelectorAll('[name=mode]')) input.checked = input.value === s.mode;
  if (document.activeElement !== $('callers')) $('callers').value = s.callers;
  if (document.activeElement !== $('callers')) text($('callers-out'), s.callers);
  if (document.activeElement !== $('late')) $('late').value = s.late;
  if (document.activeElement !== $('late')) text($('late-out'), seconds(s.late));
  if (document.activeElement !== $('ttl')) $('ttl').value = s.ttl;
  for (const id of ['stale', 'local', 'intend', 'put', 'hedge']) {
    $(id).checked = s[id];
    $(id).disabled = s.mode !== 'guard';
  }
  $('feed').checked = s.feed;
  $('slow').setAttribute('aria-pressed', s.slow);
}

const seconds = (ms) => ms >= 1000 ? (ms / 1000).toFixed(1) + ' s' : Math.round(ms) + ' ms';

function drawCosts(state) {
  for (const card of document.querySelectorAll('.mode')) {
    const cost = state.costs[card.dataset.mode];
    if (!cost) continue;
    text(card.querySelector('b'), cost.queries);
    text(card.querySelector('i'), cost.queries === 1 ? 'query' : 'queries');
    text(card.querySelector('.note'), `for one expiry; the slowest caller waited ${seconds(cost.slowest)}`);
  }
}

function drawInstances(state) {
  const rows = $('instances');
  while (rows.childElementCount < state.instances.length) {
    const row = rows.insertRow();
    row.innerHTML = '<th scope="row"></th><td><span class="pill"></span></td><td><div class="wait"><div></div><span></span></div></td><td></td><td><button></button></td>';
  }
  state.instances.forEach((one, i) => {
    const row = rows.rows[i];
    const alive = one.state !== 'killed';
    const total = Object.values(one.answers).reduce((sum, n) => sum + n, 0);
    const rate = Math.max(0, (total - (row.total ?? total)) / Math.max(0.001, (state.time - (row.time ?? 0)) / 1000));
    row.total = total;
    row.time = state.time;
    row.dataset.state = one.state === 'serving' && rate === 0 ? 'idle' : one.state;
    row.title = Object.entries(one.answers).map(([how, n]) => `${how} ${n}`).join(', ');
    text(row.cells[0], one.name);
    const pill = row.cells[1].firstChild;
    pill.dataset.state = row.dataset.state;
    text(pill, one.loading > 1 ? `loading × ${one.loading}` : row.dataset.state);
    const [bar, number] = row.cells[2].firstChild.children;
    const held = row.dataset.state === 'loading' || row.dataset.state === 'waiting' ? one.waiting : 0;
    bar.style.width = `${100 * held * state.instances.length / Math.max(1, 2 * state.settings.callers)}%`;
    text(number, held);
    text(row.cells[3], Math.round(rate));
    const button = row.cells[4].firstChild;
    text(button, alive ? 'Kill' : 'Start');
    button.setAttribute('aria-label', `${alive ? 'Kill' : 'Start'} ${one.name}`);
    button.dataset.number = i;
    button.dataset.do = alive ? 'kill' : 'start';
  });
}

function drawServers(state) {
  const redis = state.redis === 'up' && state.settings.late ? 'slow' : state.redis;
  $('redis').dataset.state = redis;
  text($('redis'), { up: 'up', slow: 'slow', frozen: 'frozen', down: 'killed' }[redis]);
  $('freeze').setAttribute('aria-pressed', state.redis === 'frozen');
  $('down').setAttribute('aria-pressed', state.redis === 'down');
  const fresh = state.redis === 'up' ? state.fresh : 0;
  const entry = fresh ? `expires in ${seconds(Math.ceil(fresh / 1000) * 1000)}` : state.missing ? 'is missing' : 'has expired, and is served stale';
  text($('entry'), state.redis === 'up' ? entry : 'is out of reach');
  $('entry-bar').style.width = `${fresh / state.settings.ttl / 10}%`;

  text($('answered'), state.answered ?? '–');
  text($('version'), state.version);
  $('old').hidden = state.answered === null || state.answered >= state.version;

  const full = state.busy === state.pool;
  $('database').dataset.state = full ? 'full' : state.settings.slow ? 'slow' : 'up';
  text($('database'), full ? 'full' : state.settings.slow ? 'slow' : 'up');
  for (const id of ['busy', 'pool', 'queued', 'peak', 'failed', 'outdated']) text($(id), state[id]);
  text($('latency'), seconds(state.latency));
  const box = $('connections');
  while (box.childElementCount < state.pool) box.append(document.createElement('span'));
  [...box.children].forEach((one, i) => one.classList.toggle('busy', i < state.busy));
  $('queue-bar').style.width = `${Math.min(100, 100 * state.queued / Math.max(1, state.settings.callers))}%`;
}

// --- The charts.

const span = 30; // seconds at most
const shown = () => Math.max(10, Math.min(span, latest() - (history[0]?.time ?? 0)));
const history = []; // { time, mode, expiries, and a value for each chart }
const charts = [];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// bands shows what protected the database when, and the expiries.
function bands(u) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const at = (sample) => Math.min(left + width, Math.max(left, u.valToPos(sample.time - latest(), 'x', true)));
  ctx.save();
  for (let i = 0, from = 0; i < history.length; i++) {
    const next = history[i + 1];
    if (next && history[i].expiries !== next.expiries) {
      ctx.strokeStyle = colour('edge');
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(at(history[i]), top);
      ctx.lineTo(at(history[i]), top + height);
      ctx.stroke();
    }
    if (next && next.mode === history[from].mode) continue;
    const [x, end] = [at(history[from]), at(next ?? history[i])];
    ctx.fillStyle = colour(history[from].mode);
    ctx.globalAlpha = 0.12;
    ctx.fillRect(x, top, end - x, height);
    ctx.globalAlpha = 1;
    ctx.fillRect(x, top, end - x, 3 * devicePixelRatio);
    ctx.textAlign = 'left';
    ctx.textBaseline = 'top';
    ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    const label = modeNames[history[from].mode];
    if (ctx.measureText(label).width < end - x - 3) ctx.fillText(label, x + 3, top + 5 * devicePixelRatio);
    from = i + 1;
  }
  ctx.restore();
}

const latest = () => history.length ? history[history.length - 1].time : 0;

function makeCharts() {
  while (charts.length) charts.pop().plot.destroy();
  for (const figure of document.querySelectorAll('figure')) {
    const box = figure.querySelector('[role=img]');
    const name = figure.dataset.figure;
    const axis = { stroke: colour('soft'), grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const top = { queries: 10, waiting: 10, p99: 100, hits: 100 }[name];
    const plot = new uPlot({
      width: box.clientWidth, height: 128, legend: { show: false }, cursor: { show: false }, padding: [6, 14, 0, 0],
      scales: { x: { time: false, range: () => [-shown(), 0] }, y: { range: (u, min, max) => [0, name === 'hits' ? 130 : Math.max(top, max * 1.4)] } },
      axes: [
        { ...axis, size: 22, splits: () => [-20, -10, 0].filter((x) => x >= -shown()), values: (u, all) => all.map((x) => x ? `${-x} s ago` : 'now') },
        { ...axis, size: 44, values: (u, all) => all.map((y) => name === 'hits' ? (y > 100 ? '' : y + '%') : name === 'p99' ? seconds(y) : y), space: 28 },
      ],
      series: [{}, { stroke: colour('ink'), width: 2, fill: colour('accent') + '30', points: { show: false }, spanGaps: false }],
      hooks: { drawClear: [bands] },
    }, [[], []], box);
    charts.push({ plot, name, figure, box });
  }
  drawCharts();
}

function drawCharts() {
  const end = latest();
  for (const { plot, name, figure, box } of charts) {
    plot.setData([history.map((h) => h.time - end), history.map((h) => h[name])]);
    const value = history.length ? history[history.length - 1][name] : null;
    const said = value === null ? 'none' : name === 'p99' ? seconds(value) : name === 'hits' ? value.toFixed(0) + ' %' : String(value);
    text(figure.querySelector('b'), said);
    box.setAttribute('aria-label', `${figure.querySelector('figcaption').firstChild.data.trim()}: now ${said}`);
  }
}

function remember(state) {
  history.push({
    time: state.time / 1000, mode: state.settings.mode, expiries: state.expiries, queries: state.queries, waiting: state.waiting,
    p99: state.p99, hits: state.hits === null ? null : state.hits * 100,
  });
  while (history[0].time < latest() - span - 1) history.shift();
}

// --- The connection.

function draw(state) {
  now = state;
  remember(state);
  for (const line of state.journal) {
    if (line.number > noted) note(line.text, line.time);
    noted = Math.max(noted, line.number);
  }
  drawSettings(state.settings);
  drawCosts(state);
  drawInstances(state);
  drawServers(state);
  drawCharts();
  document.body.dataset.ready = state.time;
}

makeCharts();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', makeCharts);
addEventListener('resize', () => charts.forEach(({ plot, box }) => plot.setSize({ width: box.clientWidth, height: 128 })));
const events = new EventSource(location.origin + '/events');
events.onmessage = (e) => {
  $('link').dataset.state = 'up';
  text($('link'), 'live');
  if (!paused) draw(JSON.parse(e.data));
};
events.onerror = () => {
  $('link').dataset.state = 'down';
  text($('link'), 'the lab has ended, or does not answer');
};
