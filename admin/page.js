'use strict';
(() => {
  const byID = (id) => document.getElementById(id);
  const token = document.querySelector('meta[name=cacheguard-token]').content;
  const every = 2000;
  let paused = false, data = null;

  // Whatever comes from the server becomes text, never markup.
  const seconds = (s) => s < 0 ? '–' : s < 0.001 ? Math.round(s * 1e6) + ' µs' : s < 1 ? (s * 1000).toFixed(s < 0.01 ? 1 : 0) + ' ms'
    : s < 120 ? s.toFixed(1) + ' s' : s < 7200 ? Math.round(s / 60) + ' min' : Math.round(s / 3600) + ' h';
  const percent = (r) => r < 0 ? '–' : (r * 100).toFixed(r > 0.995 && r < 1 ? 2 : 1) + ' %';
  const number = (n) => n >= 1e6 ? (n / 1e6).toFixed(1) + ' M' : n >= 1e4 ? (n / 1e3).toFixed(1) + ' k' : n >= 10 || n === Math.round(n) ? String(Math.round(n)) : n.toFixed(1);
  const bytes = (n) => n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + ' MiB' : n >= 1 << 10 ? (n / (1 << 10)).toFixed(1) + ' KiB' : n + ' B';

  // plain shows what cannot be seen, or changes the order of what follows: a name must not look like another.
  const plain = (s) => s.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => '\\u{' + c.codePointAt(0).toString(16) + '}');

  // fill makes the rows of a table, and keeps those that are there, so that nobody loses the focus.
  function fill(id, rows, none) {
    const body = byID(id).tBodies[0], columns = byID(id).tHead.rows[0].cells.length;
    if (rows.length === 0) {
      const row = body.insertRow(0), cell = row.insertCell();
      cell.colSpan = columns;
      cell.className = 'empty';
      cell.textContent = none;
      while (body.rows.length > 1) body.deleteRow(1);
      return;
    }
    if (body.rows.length > 0 && body.rows[0].cells[0].className === 'empty') body.deleteRow(0);
    rows.forEach((cells, i) => {
      const row = body.rows[i] || body.insertRow();
      row.dataset.state = cells.state || '';
      cells.forEach((cell, n) => {
        let at = row.cells[n];
        if (!at) {
          at = document.createElement(n === 0 ? 'th' : 'td');
          if (n === 0) at.scope = 'row';
          at.className = byID(id).tHead.rows[0].cells[n].className || 'text';
          row.append(at);
        }
        put(at, cell);
      });
    });
    while (body.rows.length > rows.length) body.deleteRow(rows.length);
  }

  // put shows a cell: text, a key to look up, or a line.
  function put(at, cell) {
    if (typeof cell === 'string') {
      cell = plain(cell);
      if (at.textContent !== cell) at.textContent = cell;
      return;
    }
    if (cell.ratios) {
      spark(at, cell.ratios);
      return;
    }
    let button = at.querySelector('button');
    if (!button) {
      at.replaceChildren(button = document.createElement('button'));
      button.type = 'button';
      button.className = 'key';
      button.addEventListener('click', () => button.act());
    }
    button.act = cell.act;
    if (button.textContent !== plain(cell.text)) button.textContent = plain(cell.text);
    button.setAttribute('aria-label', plain(cell.label));
  }

  // spark draws hit ratios from 0 to 1. Where nobody asked there is a gap.
  function spark(at, ratios) {
    const ns = 'http://www.w3.org/2000/svg', width = 90, height = 28;
    let svg = at.querySelector('svg');
    if (!svg) {
      svg = document.createElementNS(ns, 'svg');
      svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
      svg.setAttribute('preserveAspectRatio', 'none');
      svg.setAttribute('role', 'img');
      for (const y of [1, height - 1]) {
        const line = document.createElementNS(ns, 'line');
        line.setAttribute('x2', width);
        line.setAttribute('y1', y);
        line.setAttribute('y2', y);
        svg.append(line);
      }
      svg.append(document.createElementNS(ns, 'path'));
      at.replaceChildren(svg);
    }
    let path = '', gap = true;
    ratios.forEach((r, i) => {
      if (r < 0) {
        gap = true;
        return;
      }
      const x = width - ratios.length + i + 0.5, y = (1 - r) * (height - 4) + 2;
      path += (gap ? 'M' : 'L') + x + ' ' + y.toFixed(1) + (gap ? 'h.6' : '');
      gap = false;
    });
    svg.lastChild.setAttribute('d', path);
    const known = ratios.filter((r) => r >= 0);
    svg.setAttribute('aria-label', known.length === 0 ? 'nobody asked'
      : 'from ' + percent(Math.min(...known)) + ' to ' + percent(Math.max(...known)) + ', now ' + percent(known[known.length - 1]));
  }

  const some = (n, one, more) => number(n) + ' ' + (n === 1 ? one : more);
  const wrongs = {
    outage: ['bad', (g, s) => 'Redis does not answer for ' + s + ': each process loads for itself. Bring Redis back; nothing else is needed.'],
    slow: ['warn', (g, s) => 'Redis takes longer than the loads that it saves, for ' + s + '. So far ' + some(g.hedged, 'load', 'loads') + ' ran beside it.'],
    pending: ['bad', (g, s) => some(g.pending, 'invalidation is', 'invalidations are') + ' pending for ' + s + ': other processes may serve old values.'],
    deaf: ['warn', (g, s, for_) => (for_ > 0 ? 'Messages do not arrive for ' + s : 'Messages have not arrived yet') + ': calls that wait poll, and the local tier is not used.' + (g.deaf_as ? ' ' + g.deaf_as + '.' : '') + (g.troubles.outage ? '' : ' See the user’s rights to channels.')],
    missed: ['warn', (g, s) => 'Messages may have been missed again and again for ' + s + ': calls that wait ask again each time, and a local tier, if there is one, is dropped. Is the connection of the subscription cut?'],
    mute: ['warn', (g, s) => some(g.refused_messages, 'message', 'messages') + ' about invalidations refused for ' + s + ': local tiers of other processes, if there are any, may serve old values until Local.TTL. See the user’s rights to channels.'],
    saturated: ['warn', (g, s) => some(g.queued, 'load waits', 'loads wait') + ' for ' + s + ', as ' + g.loading + ' of ' + g.max_loads + ' run. Is the database slow?'],
    limiter: ['warn', (g, s) => 'Loads wait for Config.Limiter for ' + s + ': all processes together run as many as it allows. Is the database slow?'],
    refused: ['bad', (g, s, ago) => 'Redis answered with an error, last ' + s + ' ago' + (ago > 5 ? ' and not since then' : '') + ': ' + g.refused + '. Is it full, or does the user lack a right?'],
    intent: ['warn', (g, s) => some(g.intents, 'intent stands', 'intents stand') + ', the oldest for ' + s + (g.oldest_intent_of ? ', an ' + g.oldest_intent_of : '') + ': its transaction or write takes long, or nobody calls Done.'],
    bypassed: ['warn', (g, s) => 'The cache is turned off for ' + s + ', ' + g.bypassed + ': calls load without it.'],
  };

  const locker = (l) => l.prefix + ' (' + l.kind + (l.servers ? ' of ' + l.servers : l.permits ? ', ' + l.permits + ' permits' : '') + ')';
  const pagesName = (p) => p.space ? p.name + ', space ' + p.space : p.name;
  const brief = {
    outage: 'Redis does not answer', pending: 'invalidations are pending', refused: 'Redis answered with an error', deaf: 'messages do not arrive', missed: 'messages are missed', mute: 'messages are refused', saturated: 'loads wait', limiter: 'loads wait for the Limiter', slow: 'Redis is slow', intent: 'an intent stands', bypassed: 'the cache is turned off',
  };

  const lately = (c, what) => c.lately[what] + ' lately, the last ' + seconds(c.lately_ago[what]) + ' ago at most';

  function troubles() {
    const all = [], heard = [], outage = data.guards.some((g) => g.troubles.outage);
    for (const g of data.guards) {
      let cause = null; // what it brings has no line of its own
      for (const name of g.order) {
        const lasts = g.troubles[name];
        const [state, say] = wrongs[name];
        heard.push(g.prefix + ': ' + brief[name]);
        const text = say(g, seconds(lasts), lasts);
        if (cause && g.brought && g.brought.includes(name)) {
          cause[1] += ' ' + text;
          if (state === 'bad') cause[0] = state;
          continue;
        }
        all.push([state, g.prefix + ': ' + text]);
        if (name === g.cause) cause = all[all.length - 1];
      }
      for (const [what, of, ago] of [['tags', g.unknown_tags, g.unknown_tags_ago], ['keys', g.unknown_keys, g.unknown_keys_ago]]) {
        for (const [kind, n] of Object.entries(of || {})) {
          all.push(['warn', g.prefix + ': ' + what + ' like “' + kind + '” were invalidated ' + some(n, 'time', 'times') + ', last ' + seconds(ago[kind]) + ' ago, and no load of this process has had one. Is it mistyped?']);
        }
      }
      for (const c of g.caches) {
        const name = c.name ? g.prefix + ', ' + c.name : g.prefix;
        const same = c.failing ? g.caches.filter((other) => other.failing && other.failing.last === c.failing.last) : []; // one cause is one line
        if (same[0] === c) {
          const sum = (what) => same.reduce((n, other) => n + other.failing[what], 0);
          const names = same.length > 1 ? g.prefix + ', ' + same.map((other) => other.name || 'keys of no Cache').join(', ') : name;
          heard.push(names + ': loads fail');
          all.push(['bad', names + ': ' + Math.round(100 * sum('failed') / sum('loads')) + ' % of loads fail, for ' + seconds(Math.max(...same.map((other) => other.failing.for))) + ', last: ' + c.failing.last]);
        }
        if (c.lately.damaged > 0) all.push(['warn', name + ': entries could not be decoded, ' + lately(c, 'damaged') + '. Do two types, Codecs or versions share the keys, or calls with a Cache and without? See the log.']);
        if (c.lately.unstorable > 0) all.push(['warn', name + ': values could not be stored, ' + lately(c, 'unstorable') + '. Is Redis full, or are they too large?']);
        if (c.lately.takeovers > 0) all.push(['warn', name + ': loads were taken over from instances that died, stood still or could not renew, ' + lately(c, 'takeovers') + '.']);
      }
    }
    for (const p of data.pages) {
      const name = 'Pages of ' + pagesName(p), share = (s) => Math.round(100 * s.of / s.requests) + ' %';
      if (p.failing) {
        heard.push(name + ': requests fail');
        all.push(['bad', name + ': ' + share(p.failing) + ' of the requests of the last minutes failed, the last for ' + p.failing.why + ': the handler panics, breaks off or takes too long, Redis refuses (FailClosed), or clients left. The log has the path of a panic.']);
      }
      if (p.faulty) {
        heard.push(name + ': errors are served');
        all.push(['bad', name + ': ' + share(p.faulty) + ' of the requests of the last minutes got an error (500 or more) from the cache, the last for ' + p.faulty.why + ': its handler, StatusTTL or StoreErrors lets the cache store it. Invalidate the page when the handler works again.']);
      }
      if (p.uncached) {
        heard.push(name + ': responses cannot be stored');
        all.push(['warn', name + ': ' + share(p.uncached) + ' of the requests of the last minutes went to the handler each, as the responses cannot be stored. Most of these: ' + p.uncached.why + ' (detail of Cache-Status).']);
      }
    }
    for (const l of data.lockers) {
      if (!l.deaf) continue;
      heard.push(l.prefix + ': ' + brief.deaf);
      all.push(['warn', locker(l) + ': messages do not arrive: calls that wait for locks poll.' + (outage ? '' : ' See the user’s rights to channels.')]);
    }
    for (const f of data.feeds) {
      if (f.problem) {
        heard.push(f.name + ': the feed is in trouble');
        all.push(['bad', 'Feed ' + f.name + ': changes wait to be invalidated: ' + f.problem]);
      } else if (f.behind >= 10) {
        heard.push(f.name + ': the feed is behind');
        all.push(['warn', 'Feed ' + f.name + ' is behind for ' + seconds(f.behind) + ': so old can values be.']);
      }
      if (f.held_by) {
        heard.push(f.name + ': the log is held back');
        all.push(['warn', 'Feed ' + f.name + ': the database keeps ' + bytes(f.retained_bytes) + ' of its log, and the feed is not the reason: ' + f.held_by +
          (f.held_for ? ', open for ' + seconds(f.held_for) : '') + '. End it.']);
      }
      if (f.unmapped_ago >= 0) all.push(['warn', 'Feed ' + f.name + ': the keys of ' + some(f.unmapped, 'row', 'rows') + ' were not known, last ' + seconds(f.unmapped_ago) + ' ago, so kinds were invalidated whole. See the log for the column.']);
    }
    if (all.length === 0) all.push(['good', 'Nothing that this process knows of.']);
    const aloud = heard.join('; ') || 'Nothing is wrong.'; // without the durations, which change all the time
    if (byID('heard').textContent !== aloud) byID('heard').textContent = aloud;
    const list = byID('wrong');
    all.forEach(([state, text], i) => {
      const item = list.children[i] || list.appendChild(document.createElement('li'));
      item.dataset.state = state;
      if (item.textContent !== plain(text)) item.textContent = plain(text);
    });
    while (list.children.length > all.length) list.lastChild.remove();
  }

  // An input cannot hold every name: it leaves out line breaks. What was chosen stands for itself until somebody changes what is shown.
  const chosen = new WeakMap();
  const enter = (input, name) => {
    input.value = name;
    chosen.set(input, {name, shown: input.value});
  };
  const entered = (input) => chosen.has(input) && chosen.get(input).shown === input.value ? chosen.get(input).name : input.value;
  document.addEventListener('input', (event) => chosen.delete(event.target));

  const choose = (select, labels) => {
    if (!select || select.options.length === labels.length) return;
    select.replaceChildren(...labels.map((label, i) => new Option(label, i)));
  };

  function guards() {
    const names = data.guards.map((g) => g.prefix);
    document.querySelectorAll('select[name=guard]').forEach((select) => choose(select, names));
    byID('over').textContent = data.over > 0 ? 'Rates and the first ratio are of the last ' + seconds(data.over) + '. The line begins when somebody looks.'
      : 'Rates are known in two seconds.';
    const look = (key, i) => ({text: key, label: 'Look up ' + key, act: () => {
      byID('look').elements.guard.value = i;
      enter(byID('look').elements.key, key);
      byID('look').requestSubmit();
      byID('look').scrollIntoView({block: 'start'});
    }});
    const caches = [], loads = [], slow = [], hot = [], limits = [];
    data.guards.forEach((g, i) => {
      for (const c of g.caches) {
        if (c.name === '' && g.caches.length > 1 && c.all_ratio < 0) continue;
        caches.push([c.name ? g.prefix + ' › ' + c.name : g.prefix, percent(c.ratio), {ratios: c.ratios}, percent(c.all_ratio), number(c.rate), number(c.loads), seconds(c.load_took),
          number(c.failed), number(c.takeovers), number(c.damaged), number(c.unstorable)]);
      }
      const shown = (l) => l.keys > 1 ? l.key + ' and ' + (l.keys - 1) + ' more' : l.cut ? l.key + '…' : l.key;
      const row = (l, ended, state) => {
        const cells = [l.cut ? shown(l) : {...look(l.key, i), text: shown(l)}, g.prefix, seconds(l.took), ended];
        cells.state = state;
        cells.took = l.took;
        return cells;
      };
      for (const l of g.running) loads.push(row(l, 'runs since ' + l.began.slice(11, 19) + ' UTC', 'running'));
      for (const l of g.slowest) slow.push(row(l, l.failed ? 'failed' : 'well', l.failed ? 'bad' : ''));
      for (const h of g.hot) hot.push([h.cut ? h.key + '…' : look(h.key, i), g.prefix, number(h.rate)]);
      limits.push(g.prefix + ' on ' + g.redis + ': ' + g.loading + (g.max_loads ? ' of ' + g.max_loads : '') + ' loads run, ' + g.queued + ' wait for their turn, ' + g.waiting + ' calls wait' +
        (g.breakers_open ? '; ' + g.breakers_open + ' of ' + g.breakers + ' circuit breakers are open' : '') +
        (g.hedged ? '; ' + some(g.hedged, 'load', 'loads') + ' ran beside Redis' : '') +
        (g.intents ? '; ' + some(g.intents, 'intent stands', 'intents stand') + ', the oldest for ' + seconds(g.oldest_intent) : '') +
        (g.warming ? '; ' + g.warming + ' warm-ups run' : '') +
        (g.failed_refreshes ? '; ' + some(g.failed_refreshes, 'load', 'loads') + ' in the background failed' : '') +
        (g.local_entries ? '; local tier: ' + some(g.local_entries, 'entry', 'entries') + (g.local_bytes ? ', ' + bytes(g.local_bytes) : '') + ', ' + number(g.local_evictions) + ' gave way' : '') +
        Object.entries(g.happened).sort().map(([what, n]) => '; ' + some(n, 'time', 'times') + ': ' + what).join('') +
        '; ' + bytes(g.read_bytes) + ' read, ' + bytes(g.written_bytes) + ' written');
    });
    fill('caches', caches, 'No guard has been asked yet.');
    fill('loads', loads.concat(slow.sort((a, b) => b.took - a.took).slice(0, 10)), 'Nothing was loaded in the last minutes.');
    fill('hot', hot.slice(0, 10), 'No key is asked for often.');
    byID('limits').textContent = limits.join(' · ');
    byID('numbers').textContent = data.guards.flatMap((g) => g.numbers.map((n) => g.prefix + '  ' + n.name + ' ' + n.value + '  ' + n.help)).join('\n');
    byID('who').textContent = [...new Set(data.guards.map((g) => g.instance))].join(', ');
  }

  function lockers() {
    choose(byID('lock').elements.locker, data.lockers.map(locker));
    revocable();
    const rows = [];
    data.lockers.forEach((l, i) => {
      for (const k of l.locks) {
        rows.push([k.cut ? k.name + '…' : {text: k.name, label: 'Who holds ' + k.name, act: () => {
          byID('lock').elements.locker.value = i;
          enter(byID('lock').elements.name, k.name);
          revocable();
          byID('lock').requestSubmit();
        }}, l.kind + ', ' + k.mode, seconds(k.for), seconds(Math.max(k.left, 0)), k.fence ? String(k.fence) : '–']);
      }
      if (l.held > l.locks.length) rows.push([(l.held - l.locks.length) + ' more of ' + l.prefix, l.kind, '', '', '']);
    });
    fill('locks', rows, 'This process holds no lock.');
  }

  // revocable turns the button off for a kind of locks that cannot be taken away.
  function revocable() {
    const of = data.lockers[byID('lock').elements.locker.value], button = byID('revoke');
    if (button && of) button.disabled = !of.revocable;
  }

  // holders says who has a lock.
  function holders(l) {
    const waiting = (l.waiting + l.waiting_readers) + ' wait.';
    const line = (text) => plain(JSON.stringify(text)).slice(1, -1); // what it names must not look like another line
    const who = (h) => line(h.instance) || 'an instance that is not known';
    const by = l.held_by.map((h) => '\n  ' + who(h) + (l.servers ? ', on ' + h.servers + ' servers' : '') + ', lease ends in ' + seconds(h.left) + ', token ' + line(h.token)).join('');
    if (l.permits) {
      return l.holders + ' of ' + l.permits + ' permits are held, ' + waiting + by + (l.holders > l.held_by.length ? '\n  and ' + (l.holders - l.held_by.length) + ' more' : '');
    }
    if (l.servers) {
      const all = '\n' + l.answered + ' of ' + l.servers + ' servers answered. Fence ' + l.fence + '.';
      return (l.holders ? 'Held by ' + who(l) + '. A majority has its lease for ' + seconds(l.left) + ' unless it is renewed.' : 'No majority names a holder of ' + plain(JSON.stringify(l.name)) + '.') + by + all;
    }
    if (l.holders === 0) return 'Nobody holds ' + plain(JSON.stringify(l.name)) + '; ' + waiting;
    return 'Held by ' + (l.token ? who(l) : l.holders + ' readers') + '. Its lease ends in ' + seconds(l.left) + ' unless it is renewed.\n' +
      waiting + ' Fence ' + l.fence + (l.token ? ', token ' + line(l.token) : '') + '.';
  }

  function pages() {
    fill('pages', data.pages.map((p) => [pagesName(p), percent(p.ratio), percent(p.all_ratio)].concat(
      ['hit', 'stale', 'loaded', 'shared', 'bypassed', 'passed', 'refused', 'faulty', 'failed'].map((r) => number(p.answers[r])))), 'There are none.');
  }

  function feeds() {
    fill('feeds', data.feeds.map((f) => [f.name, f.reading ? 'reads' : 'stands by', f.reading ? seconds(f.behind) : '–', bytes(f.behind_bytes), bytes(f.retained_bytes),
      number(f.rows), number(f.invalidations), number(f.whole), number(f.unmapped), number(f.reconnects)]), 'There are none.');
  }

  function reports() {
    fill('reports', data.reports.map((r) => [r.name, number(r.rows)].concat(r.after.map((l) => l.reads ? number(l.old_per_million) : '–'), [r.p50, r.p99, r.longest].map(seconds))), 'There are none.');
    fill('old', data.reports.flatMap((r) => r.old.map((o) => [o.cut ? o.key + '…' : o.key, o.table, seconds(o.after), o.committed, o.why])).slice(0, 20), 'None was.');
  }

  function show() {
    troubles();
    if (byID('caches')) guards();
    if (byID('locks')) lockers();
    if (byID('pages')) pages();
    if (byID('feeds')) feeds();
    if (byID('reports')) reports();
  }

  const link = (state, why) => {
    const pill = byID('link');
    const text = why ? state + ': ' + why : state;
    pill.dataset.state = state;
    if (pill.textContent !== text) pill.textContent = text;
  };

  async function ask(query, options) {
    // In full, and without the password that may be in the page's own URL: fetch refuses that.
    const response = await fetch(location.origin + location.pathname + '?' + new URLSearchParams(query), {cache: 'no-store', ...options});
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  async function refresh() {
    try {
      data = await ask({view: 'data'});
      link('live');
      show();
    } catch (err) {
      link('lost', err.message);
    }
  }

  async function turn() {
    if (!paused && !document.hidden) await refresh();
    setTimeout(turn, every);
  }

  byID('pause').addEventListener('click', () => {
    paused = !paused;
    byID('pause').setAttribute('aria-pressed', paused);
    link(paused ? 'paused' : 'live');
    if (!paused) refresh();
  });

  // A form asks, and what comes back is shown as text.
  function form(id, out, query, text) {
    const f = byID(id);
    if (!f) return;
    f.addEventListener('submit', async (event) => {
      event.preventDefault();
      byID(out).hidden = false;
      try {
        byID(out).textContent = text(await ask(query(f.elements)));
      } catch (err) {
        byID(out).textContent = err.message;
      }
    });
  }
  form('look', 'found', (e) => ({view: 'key', guard: e.guard.value, key: entered(e.key)}), (k) => k.problem ? JSON.stringify(k.problem) + '\n' + k.text : k.text);
  form('lock', 'holder', (e) => ({view: 'lock', locker: e.locker.value, name: entered(e.name)}), holders);

  async function act(name, body, question) {
    if (!confirm(plain(question))) return;
    const said = byID('said');
    said.textContent = '';
    try {
      said.textContent = (await ask({do: name}, {method: 'POST', headers: {'Content-Type': 'application/json', 'Cacheguard-Token': token}, body: JSON.stringify(body)})).done;
    } catch (err) {
      said.textContent = 'Not done: ' + err.message;
    }
    refresh();
  }
  const on = (id, event, f) => byID(id) && byID(id).addEventListener(event, f);
  on('lock', 'change', revocable);
  on('invalidate-key', 'click', () => {
    const e = byID('look').elements;
    if (byID('look').reportValidity()) act('invalidate-key', {guard: Number(e.guard.value), name: entered(e.key)}, 'Invalidate ' + JSON.stringify(entered(e.key)) + ' on every instance?');
  });
  on('revoke', 'click', () => {
    const e = byID('lock').elements;
    if (byID('lock').reportValidity()) act('revoke', {locker: Number(e.locker.value), name: entered(e.name)}, 'Take ' + JSON.stringify(entered(e.name)) + ' away from its holders? What they still do, only a fence stops.');
  });
  on('invalidate', 'submit', (event) => {
    event.preventDefault();
    const e = event.target.elements;
    act(e.what.value, {guard: Number(e.guard.value), name: e.name.value}, 'Invalidate ' + e.what.selectedOptions[0].text + ' ' + JSON.stringify(e.name.value) + ' on every instance?');
  });
  on('bypass', 'submit', (event) => {
    event.preventDefault();
    const e = event.target.elements, guard = Number(e.guard.value);
    if (e.where.value === 'here') act('bypass', {guard, on: true}, 'Turn the cache off for this process?');
    else act('bypass-fleet', {guard, seconds: Number(e.minutes.value) * 60}, 'Turn the cache off for all instances?');
  });
  on('use', 'click', () => {
    const e = byID('bypass').elements, guard = Number(e.guard.value);
    if (e.where.value === 'here') act('bypass', {guard, on: false}, 'Use the cache on this process again?');
    else act('bypass-fleet', {guard, seconds: 0}, 'Use the cache on all instances again?');
  });
  turn();
})();
