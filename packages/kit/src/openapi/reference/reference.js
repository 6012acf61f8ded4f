// Draws the OpenAPI document beside this page. Every text of the document becomes a text node, never markup,
// so a description cannot carry a script; the page's content policy would refuse it as well.

const METHODS = ['get', 'query', 'post', 'put', 'patch', 'delete', 'head', 'options'];

/** @type {Record<string, any>} */
let api = {};

/** Creates an element: attributes by name, children as nodes or text, nothing for null. */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'onclick') node.addEventListener('click', value);
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Paragraphs and `code`, the two things descriptions use. */
function prose(text) {
  return String(text ?? '')
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph.trim() !== '')
    .map((paragraph) => el('p', {}, inline(paragraph)));
}

function inline(text) {
  return String(text)
    .split(/(`[^`]+`)/)
    .map((part) => (part.length > 2 && part.startsWith('`') && part.endsWith('`') ? el('code', {}, part.slice(1, -1)) : part));
}

function resolve(value) {
  let current = value;
  for (let hops = 0; current && typeof current.$ref === 'string' && hops < 20; hops += 1) {
    current = current.$ref
      .replace(/^#\//, '')
      .split('/')
      .reduce((node, part) => node?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], api);
  }
  return current ?? {};
}

const refName = (schema) => (typeof schema?.$ref === 'string' ? schema.$ref.split('/').pop() : null);

function typeText(schema) {
  if (schema === true || schema === undefined) return 'any';
  if (schema === false) return 'nothing';
  const name = refName(schema);
  if (name) return name;
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return 'one of';
  for (const word of ['oneOf', 'anyOf']) {
    if (schema[word]) return [...new Set(schema[word].map(typeText))].join(' | ');
  }
  if (schema.allOf) return schema.allOf.map(typeText).join(' & ');
  const types = [schema.type ?? (schema.properties ? 'object' : 'any')].flat();
  return types
    .map(
      (type) =>
        (type === 'array' ? `array of ${typeText(schema.items)}` : type) + (schema.format && type !== 'null' ? ` (${schema.format})` : ''),
    )
    .join(' | ');
}

const FACTS = [
  ['minimum', '≥'],
  ['exclusiveMinimum', '>'],
  ['maximum', '≤'],
  ['exclusiveMaximum', '<'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'length ≥'],
  ['maxLength', 'length ≤'],
  ['minItems', 'items ≥'],
  ['maxItems', 'items ≤'],
  ['minProperties', 'fields ≥'],
  ['maxProperties', 'fields ≤'],
  ['pattern', 'matches'],
  ['default', 'default'],
];

function facts(schema) {
  const parts = FACTS.filter(
    ([key]) =>
      schema[key] !== undefined &&
      !(key === 'maximum' && schema[key] === Number.MAX_SAFE_INTEGER) &&
      !(key === 'minimum' && schema[key] === Number.MIN_SAFE_INTEGER) &&
      !(key === 'pattern' && schema.format !== undefined),
  ).map(([key, label]) => [`${label} `, el('code', {}, key === 'pattern' ? schema[key] : JSON.stringify(schema[key])), '  ']);
  if (schema.enum) parts.push(schema.enum.map((value) => [el('code', {}, JSON.stringify(value)), ' ']));
  if (schema.uniqueItems) parts.push('no duplicates ');
  if (schema.additionalProperties === false) parts.push('no other fields ');
  return parts.length > 0 ? el('div', { class: 'facts' }, parts) : null;
}

function flags(schema, required) {
  return [
    required && el('span', { class: 'flag' }, 'required'),
    schema['x-sensitive'] && el('span', { class: 'flag warn' }, 'sensitive'),
    schema.readOnly && el('span', { class: 'flag' }, 'read only'),
    schema.writeOnly && el('span', { class: 'flag' }, 'write only'),
    schema.deprecated && el('span', { class: 'flag warn' }, 'deprecated'),
  ];
}

const typeNode = (schema) => {
  const name = refName(schema) ?? refName(schema?.items);
  const text = typeText(schema);
  return el('span', { class: 'type' }, name ? [text.slice(0, text.lastIndexOf(name)), el('a', { href: `#schema-${name}` }, name)] : text);
};

/** The fields of a schema as a nested list. References are links, so a schema that contains itself ends. */
function tree(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null || depth > 6) return null;
  if (refName(schema) && depth > 0) return null;
  const target = resolve(schema);
  const parts = [...(target.allOf ?? []), target].map(resolve);
  const rows = [];
  for (const part of parts) {
    for (const [name, property] of Object.entries(part.properties ?? {})) {
      rows.push(
        el(
          'li',
          {},
          el('span', { class: 'name' }, name),
          ' ',
          typeNode(property),
          flags(property, part.required?.includes(name)),
          property.description && el('div', {}, inline(property.description)),
          facts(property),
          tree(property.items ?? property, depth + 1),
        ),
      );
    }
    if (typeof part.additionalProperties === 'object')
      rows.push(
        el(
          'li',
          {},
          el('span', { class: 'name' }, '(any name)'),
          ' ',
          typeNode(part.additionalProperties),
          tree(part.additionalProperties, depth + 1),
        ),
      );
  }
  for (const option of target.oneOf ?? target.anyOf ?? []) {
    const nested = tree(option, depth + 1);
    if (nested) rows.push(el('li', {}, typeNode(option), nested));
  }
  if (target.items && depth === 0) return el('div', {}, facts(target), typeNode(target), tree(target.items, 1));
  return rows.length > 0 ? el('ul', { class: 'tree' }, rows) : null;
}

/** An example for a schema that brings none: enough to show the shape. */
function example(schema, depth = 0) {
  const target = resolve(schema);
  if (target.example !== undefined) return target.example;
  if (Array.isArray(target.examples) && target.examples.length > 0) return target.examples[0];
  if (target.default !== undefined) return target.default;
  if ('const' in target) return target.const;
  if (target.enum) return target.enum[0];
  if (depth > 5) return null;
  const choice = target.oneOf?.[0] ?? target.anyOf?.[0];
  if (choice) return example(choice, depth + 1);
  if (target.allOf) return Object.assign({}, ...target.allOf.map((part) => example(part, depth + 1)));
  const type = [target.type ?? 'object'].flat().find((name) => name !== 'null') ?? 'null';
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(target.properties ?? {})
        .filter(([name, property]) => target.required?.includes(name) || !resolve(property).readOnly)
        .map(([name, property]) => [name, example(property, depth + 1)]),
    );
  if (type === 'array') return target.items && target.items !== true ? [example(target.items, depth + 1)] : [];
  if (type === 'integer' || type === 'number') return target.minimum ?? 1;
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  return (
    {
      'date-time': '2026-01-31T12:00:00.000Z',
      date: '2026-01-31',
      uuid: '019b0c1e-8f00-7000-8000-000000000001',
      email: 'name@example.org',
      decimal: '10.00',
      int64: '1',
      password: 'correct horse battery staple',
      uri: 'https://example.org/',
    }[target.format] ?? 'text'
  );
}

function mediaExample(media) {
  if (media.example !== undefined) return media.example;
  const first = Object.values(media.examples ?? {})[0];
  return first ? resolve(first).value : example(media.schema);
}

const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

function credentialLine(operation) {
  const wanted = Object.keys((operation.security ?? api.security ?? [])[0] ?? {})[0];
  const scheme = wanted && api.components?.securitySchemes?.[wanted];
  if (!scheme) return [];
  if (scheme.type === 'apiKey' && scheme.in === 'header') return [`-H ${quote(`${scheme.name}: $CREDENTIAL`)}`.replaceAll("'", '"')];
  if (scheme.type === 'apiKey' && scheme.in === 'cookie') return [`-b "${scheme.name}=$CREDENTIAL"`];
  if (scheme.type === 'http' && scheme.scheme === 'basic') return ['-u "$USERNAME:$PASSWORD"'];
  return ['-H "Authorization: Bearer $CREDENTIAL"'];
}

function curl(path, method, operation, parameters) {
  const base = (api.servers?.[0]?.url ?? '').replace(/\/$/, '');
  const origin = /^https?:/.test(base) ? base : `${location.origin}${base}`;
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name) =>
    encodeURIComponent(String(example(parameters.find((parameter) => parameter.in === 'path' && parameter.name === name)?.schema ?? {}))),
  );
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map((parameter) => `${encodeURIComponent(parameter.name)}=${encodeURIComponent(String(example(parameter.schema)))}`);
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${quote(`${origin}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`)}`,
    ...credentialLine(operation),
  ];
  const [type, media] = Object.entries(resolve(operation.requestBody).content ?? {})[0] ?? [];
  if (type)
    lines.push(
      `-H ${quote(`Content-Type: ${type}`)}`,
      `--data ${quote(type.includes('json') ? JSON.stringify(mediaExample(media)) : '@file')}`,
    );
  return lines.join(' \\\n  ');
}

function sampleBlock(text, label) {
  const button = el('button', { type: 'button', class: 'button copy', 'aria-label': `Copy ${label}` }, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      // Without clipboard permission (plain HTTP): select the text so one key press copies it.
      getSelection()?.selectAllChildren(button.previousElementSibling);
      button.textContent = 'Press Ctrl+C';
    }
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
  return el('div', { class: 'sample' }, el('pre', { tabindex: '0' }, el('code', {}, text)), button);
}

const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

function parameterTable(parameters) {
  if (parameters.length === 0) return null;
  const rows = parameters.map((parameter) => {
    const schema = parameter.schema ?? {};
    return el(
      'tr',
      {},
      el('td', {}, el('span', { class: 'name' }, parameter.name), flags(parameter, parameter.required)),
      el('td', {}, parameter.in),
      el('td', {}, typeNode(schema), parameter.description && el('div', {}, inline(parameter.description)), facts(resolve(schema))),
    );
  });
  const head = el(
    'thead',
    {},
    el(
      'tr',
      {},
      ['Name', 'In', 'Value'].map((text) => el('th', { scope: 'col' }, text)),
    ),
  );
  return [el('h4', {}, 'Parameters'), el('table', { class: 'fields' }, head, el('tbody', {}, rows))];
}

function requestBlock(operation) {
  const body = resolve(operation.requestBody);
  return Object.entries(body.content ?? {}).map(([type, media]) => [
    el('h4', {}, 'Request body ', el('span', { class: 'type' }, type), body.required && flags({}, true)),
    tree(media.schema) ?? (media.schema && typeNode(media.schema)),
    type.includes('json') && sampleBlock(pretty(mediaExample(media)), 'the example body'),
  ]);
}

/** All errors share one shape: a link to it and an example say more than the same table under every status. */
function answerContent(type, media) {
  const shape = media.schema?.allOf?.find(refName) ?? media.schema;
  const example = media.example ?? resolve(Object.values(media.examples ?? {})[0]).value;
  const events = media.itemSchema ?? media['x-item-schema'];
  return [
    el('p', {}, el('span', { class: 'type' }, type), refName(shape) ? [' ', typeNode(shape)] : null),
    events ? tree(resolve(events).properties?.data?.contentSchema) : media.schema?.allOf ? null : tree(media.schema),
    example !== undefined && sampleBlock(pretty(example), 'the example answer'),
  ];
}

function answers(operation) {
  const rows = Object.entries(operation.responses ?? {}).map(([status, value]) => {
    const response = resolve(value);
    const content = Object.entries(response.content ?? {});
    const codes = response['x-error-codes'] ?? [];
    const summary = el(
      'summary',
      {},
      el('span', { class: `status ${/^[23]/.test(status) ? 'good' : 'bad'}` }, status),
      ' ',
      inline(response.description ?? ''),
    );
    const headers = Object.entries(response.headers ?? {}).map(([name, header]) =>
      el('li', {}, el('span', { class: 'name' }, name), ' ', inline(resolve(header).description ?? '')),
    );
    return el(
      'details',
      { class: 'answer' },
      summary,
      codes.length > 0 &&
        el(
          'p',
          {},
          'Codes: ',
          codes.map((code) => [el('code', {}, code), ' ']),
        ),
      headers.length > 0 && el('ul', { class: 'tree' }, headers),
      content.map(([type, media]) => answerContent(type, media)),
    );
  });
  return rows.length > 0 ? [el('h4', {}, 'Answers'), rows] : null;
}

function access(operation) {
  const wanted = operation.security ?? api.security ?? [];
  const names = [...new Set(wanted.flatMap((way) => Object.keys(way)))];
  const isOpen = wanted.length === 0 || wanted.some((way) => Object.keys(way).length === 0);
  const ways = names.map((name, index) => [index > 0 ? ' or ' : '', el('code', {}, name)]);
  return el(
    'p',
    {},
    names.length === 0 ? 'Open to everyone.' : ['Sign in with ', ways, isOpen ? ', or not at all.' : '.'],
    operation['x-scope'] && [' Needs the scope ', el('code', {}, operation['x-scope']), '.'],
    operation['x-permission'] && [' Permission: ', el('code', {}, operation['x-permission']), '.'],
  );
}

function operationNode({ id, path, method, operation, shared }) {
  const parameters = [...shared, ...(operation.parameters ?? [])].map(resolve);
  const node = el(
    'details',
    { class: `operation${operation.deprecated ? ' deprecated' : ''}`, id },
    el(
      'summary',
      {},
      el('h3', {}, el('span', { class: `method ${method}` }, method.toUpperCase()), el('span', { class: 'path' }, path)),
      el('span', { class: 'brief' }, operation.summary ?? ''),
      operation.deprecated && el('span', { class: 'flag warn' }, 'deprecated'),
    ),
  );
  // The body is drawn when it is first opened: a document of a thousand operations opens at once.
  node.addEventListener('toggle', () => {
    if (!node.open || node.childElementCount > 1) return;
    node.append(
      el(
        'div',
        { class: 'body' },
        operation.deprecated && el('p', { class: 'notice' }, 'This operation is deprecated and will be removed.'),
        prose(operation.description),
        access(operation),
        parameterTable(parameters),
        requestBlock(operation),
        answers(operation),
        el('h4', {}, 'Request'),
        sampleBlock(curl(path, method, operation, parameters), 'the curl command'),
      ),
    );
  });
  return node;
}

function collect() {
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

function draw() {
  document.title = `${api.info.title} · API reference`;
  document.getElementById('title').textContent = api.info.title;
  const version = document.getElementById('version');
  version.textContent = api.info.version;
  version.hidden = false;
  document.getElementById('intro').append(...prose(api.info.description));

  const operations = collect();
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
  drawSchemas(list, contents);
  wire(operations, groups);
}

function drawSchemas(list, contents) {
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
  const response = await fetch(document.querySelector('a[download]').href, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`openapi.json answered ${response.status}`);
  api = await response.json();
  draw();
} catch (error) {
  document.getElementById('list').append(el('p', { class: 'notice', role: 'alert' }, `The document could not be read: ${error.message}`));
}
