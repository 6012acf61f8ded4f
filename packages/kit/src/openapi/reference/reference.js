// Draws the OpenAPI document beside this page.
import { loadDocument, loadFacts, pageFacts, resolve } from './api-document.js';
import { schemeNames, setCredentials } from './credentials.js';
import { el, prose } from './dom.js';
import { operationNode } from './operation-view.js';
import { facts, tree, typeNode } from './schema-view.js';

const METHODS = ['get', 'query', 'post', 'put', 'patch', 'delete', 'head', 'options'];

function collect(api) {
  const found = [];
  for (const [path, item] of Object.entries(api.paths ?? {})) {
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const name = operation.operationId ?? `${method}${path}`;
      // A prefix keeps an operation called `search` apart from the page's own elements.
      const id = `op-${name}`;
      const text = [method, path, name, operation.summary, operation.description, operation.tags, operation['x-scope']]
        .flat()
        .filter(Boolean)
        .join(' ')
        .toLowerCase();
      found.push({ id, path, method, operation, shared: item.parameters ?? [], tag: operation.tags?.[0] ?? 'Operations', text });
    }
  }
  return found;
}

/** Back to the site that the page is a part of. */
function drawHome({ home }) {
  if (home === undefined) return;
  const link = document.getElementById('home');
  link.textContent = `← ${home.title}`;
  link.href = new URL(home.href, document.querySelector('a[download]').href).href;
  link.hidden = false;
}

function drawDownloads({ downloads = [] }) {
  if (downloads.length === 0) return;
  const base = document.querySelector('a[download]').href;
  const links = downloads.map(({ href, title }) => el('a', { class: 'button', href: new URL(href, base).href, download: true }, title));
  document.getElementById('intro').append(el('p', { class: 'downloads' }, 'Clients for these operations: ', ...links));
}

function draw(api) {
  document.title = `${api.info.title} · API reference`;
  document.getElementById('title').textContent = api.info.title;
  const version = document.getElementById('version');
  version.textContent = api.info.version;
  version.hidden = false;
  document.getElementById('intro').append(...prose(api.info.description));

  wireCredentials();

  const operations = collect(api);
  const order = [...new Set([...(api.tags ?? []).map((tag) => tag.name), ...operations.map((entry) => entry.tag)])];
  const list = document.getElementById('list');
  const contents = document.getElementById('contents');
  const groups = [];
  for (const tag of order) {
    const entries = operations.filter((entry) => entry.tag === tag);
    if (entries.length === 0) continue;
    const described = api.tags?.find((candidate) => candidate.name === tag)?.description;
    for (const entry of entries) {
      entry.node = operationNode(entry);
      entry.link = el(
        'li',
        {},
        el(
          'a',
          { href: `#${encodeURIComponent(entry.id)}` },
          el('span', { class: `method ${entry.method}` }, entry.method.toUpperCase()),
          el('span', {}, entry.operation.summary ?? entry.path),
        ),
      );
    }
    const section = el(
      'section',
      { class: 'group' },
      el('h2', {}, tag),
      prose(described),
      entries.map((entry) => entry.node),
    );
    const menu = el(
      'div',
      {},
      el('h2', {}, tag),
      el(
        'ul',
        {},
        entries.map((entry) => entry.link),
      ),
    );
    list.append(section);
    contents.append(menu);
    groups.push({ entries, section, menu });
  }
  drawSchemas(api, list, contents);
  wire(operations, groups);
}

function wireCredentials() {
  const names = schemeNames();
  const select = document.getElementById('scheme');
  const input = document.getElementById('credential');
  document.getElementById('credentials').hidden = names.length === 0;
  select.append(...names.map((name) => el('option', { value: name }, name)));
  const change = () => setCredentials(select.value, input.value);
  select.addEventListener('change', change);
  input.addEventListener('input', change);
}

function drawSchemas(api, list, contents) {
  const schemas = Object.entries(api.components?.schemas ?? {});
  if (schemas.length === 0) return;
  const nodes = schemas.map(([name, schema]) =>
    el(
      'details',
      { class: 'operation', id: `schema-${name}` },
      el(
        'summary',
        {},
        el('h3', {}, el('span', { class: 'path' }, name)),
        el('span', { class: 'brief' }, resolve(schema).description ?? ''),
      ),
      el('div', { class: 'body' }, tree(schema) ?? el('p', {}, typeNode(schema)), facts(schema)),
    ),
  );
  list.append(el('section', { class: 'group' }, el('h2', {}, 'Schemas'), nodes));
  contents.append(
    el('h2', {}, 'Schemas'),
    el(
      'ul',
      {},
      schemas.map(([name]) => el('li', {}, el('a', { href: `#schema-${name}` }, el('span', {}, name)))),
    ),
  );
}

function wire(operations, groups) {
  const search = document.getElementById('search');
  const found = document.getElementById('found');
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const entry of operations) {
      const shown = words.every((word) => entry.text.includes(word));
      entry.node.hidden = !shown;
      entry.link.hidden = !shown;
      if (shown) count += 1;
    }
    for (const group of groups) {
      const empty = group.entries.every((entry) => entry.node.hidden);
      group.section.hidden = empty;
      group.menu.hidden = empty;
    }
    found.textContent = words.length === 0 ? `${count} operations` : `${count} of ${operations.length} operations`;
  };
  search.addEventListener('input', filter);
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) {
      event.preventDefault();
      search.focus();
    }
  });
  const setAll = (open) => document.querySelectorAll('#list details.operation').forEach((node) => (node.open = open && !node.hidden));
  document.getElementById('expand').addEventListener('click', () => setAll(true));
  document.getElementById('collapse').addEventListener('click', () => setAll(false));
  const openTarget = () => {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (target?.tagName !== 'DETAILS') return;
    target.open = true;
    target.scrollIntoView();
    target.querySelector('summary')?.focus({ preventScroll: true });
    for (const link of document.querySelectorAll('#contents a')) {
      if (link.getAttribute('href') === location.hash) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  addEventListener('hashchange', openTarget);
  filter();
  openTarget();
}

try {
  const [loaded] = await Promise.allSettled([
    loadDocument(document.querySelector('a[download]').href),
    loadFacts(new URL('facts.json', import.meta.url)),
  ]);
  drawHome(pageFacts());
  if (loaded.status === 'rejected') throw loaded.reason;
  draw(loaded.value);
  drawDownloads(pageFacts());
} catch (error) {
  document.getElementById('list').append(el('p', { class: 'notice', role: 'alert' }, `The document could not be read: ${error.message}`));
}
