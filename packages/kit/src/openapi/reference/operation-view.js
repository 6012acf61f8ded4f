import { apiDocument, refName, resolve } from './api-document.js';
import { el, inline, prose } from './dom.js';
import { credentialLines, onCredentials, schemeOf } from './credentials.js';
import { mediaExample } from './example.js';
import { LANGUAGES } from './samples.js';
import { facts, flags, tree, typeNode } from './schema-view.js';
import { tryIt } from './try-it.js';

export function sampleBlock(text, label) {
  const button = el('button', { type: 'button', class: 'button copy', 'aria-label': `Copy ${label}` }, 'Copy');
  const code = el('code', {}, text);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'Copied';
    } catch {
      // Without clipboard permission (plain HTTP): select the text so one key press copies it.
      getSelection()?.selectAllChildren(button.previousElementSibling);
      button.textContent = 'Press Ctrl+C';
    }
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
  return el('div', { class: 'sample' }, el('pre', { tabindex: '0' }, code), button);
}

let language = 'curl';
const languageListeners = new Set();

/** Samples that work as they stand: with the chosen credential, and with what has to be set before. One choice of language for the whole page. */
export function requestSample(entry) {
  const { operation, method } = entry;
  const offered = Object.keys(LANGUAGES).filter((name) => LANGUAGES[name](entry) !== undefined);
  const tabs = offered.map((name) => el('button', { type: 'button', class: 'button', onclick: () => chooseLanguage(name) }, name));
  const block = sampleBlock('', 'the sample');
  const note = el('p', { class: 'sample-note' });
  const draw = () => {
    const shown = offered.includes(language) ? language : 'curl';
    for (const [index, name] of offered.entries()) tabs[index].setAttribute('aria-pressed', String(name === shown));
    block.querySelector('code').textContent = LANGUAGES[shown](entry);
    const { variables } = credentialLines(operation, method);
    const scheme = schemeOf(operation);
    const isSession = shown !== 'curl' && variables.some((text) => text.startsWith('CSRF_TOKEN'));
    note.replaceChildren(
      ...(shown === 'curl'
        ? []
        : [`Uses the client of `, el('code', {}, `kit client ${shown.toLowerCase()} --out api.${shown === 'Python' ? 'py' : 'ts'}`), '. ']),
      ...(scheme === undefined
        ? []
        : isSession
          ? ['For a page with a session; the client sends the CSRF token of its login.']
          : [
              'With ',
              el('code', {}, scheme),
              variables.length === 0
                ? '.'
                : [': set ', variables.map((text, index) => [index > 0 ? ' and ' : '', el('code', {}, text)]), ' first.'],
            ].flat(Infinity)),
    );
  };
  draw();
  onCredentials(draw);
  languageListeners.add(draw);
  return [el('div', { class: 'tabs', role: 'group', 'aria-label': 'Language of the samples' }, tabs), block, note];
}

function chooseLanguage(name) {
  language = name;
  for (const draw of languageListeners) draw();
}

export const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

export function parameterTable(parameters) {
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

export function requestBlock(operation) {
  const body = resolve(operation.requestBody);
  return Object.entries(body.content ?? {}).map(([type, media]) => [
    el('h4', {}, 'Request body ', el('span', { class: 'type' }, type), body.required && flags({}, true)),
    tree(media.schema) ?? (media.schema && typeNode(media.schema)),
    type.includes('json') && sampleBlock(pretty(mediaExample(media, true)), 'the example body'),
  ]);
}

/** All errors share one shape: a link to it and an example say more than the same table under every status. */
export function answerContent(type, media, isSuccess) {
  const shape = media.schema?.allOf?.find(refName) ?? media.schema;
  const brings = media.example ?? resolve(Object.values(media.examples ?? {})[0]).value;
  const example = brings ?? (isSuccess && type.includes('json') && media.schema ? mediaExample(media) : undefined);
  const events = media.itemSchema ?? media['x-item-schema'];
  return [
    el('p', {}, el('span', { class: 'type' }, type), refName(shape) ? [' ', typeNode(shape)] : null),
    events ? tree(resolve(events).properties?.data?.contentSchema) : media.schema?.allOf ? null : tree(media.schema),
    example !== undefined && sampleBlock(pretty(example), 'the example answer'),
  ];
}

const codesIn = ({ properties }) => properties?.code?.enum ?? [];

export function answers(operation) {
  const rows = Object.entries(operation.responses ?? {}).map(([status, value]) => {
    const response = resolve(value);
    const content = Object.entries(response.content ?? {});
    const codes = response['x-error-codes'] ?? content.flatMap(([, { schema }]) => (schema?.allOf ?? []).flatMap(codesIn));
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
      // What a caller gets when all is well is there to read at once.
      { class: 'answer', open: status.startsWith('2') },
      summary,
      codes.length > 0 &&
        el(
          'p',
          {},
          'Codes: ',
          codes.map((code) => [el('code', {}, code), ' ']),
        ),
      headers.length > 0 && el('ul', { class: 'tree' }, headers),
      content.map(([type, media]) => answerContent(type, media, status.startsWith('2'))),
    );
  });
  return rows.length > 0 ? [el('h4', {}, 'Responses'), rows] : null;
}

export function access(operation) {
  const wanted = operation.security ?? apiDocument().security ?? [];
  const names = [...new Set(wanted.flatMap((way) => Object.keys(way)))];
  const isOpen = wanted.length === 0 || wanted.some((way) => Object.keys(way).length === 0);
  const permission = operation['x-permission'] ?? apiDocument()['x-permission'];
  const ways = names.map((name, index) => [index > 0 ? ' or ' : '', el('code', {}, name)]);
  return el(
    'p',
    {},
    names.length === 0 ? 'Open to everyone.' : ['Sign in with ', ways, isOpen ? ', or not at all.' : '.'],
    operation['x-scope'] && [' Needs the scope ', el('code', {}, operation['x-scope']), '.'],
    permission && [' Permission: ', el('code', {}, permission), '.'],
  );
}

export function operationNode({ id, path, method, operation, shared }) {
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
        el('h4', {}, 'Request'),
        requestSample({ path, method, operation, parameters }),
        tryIt({ path, method, operation, parameters }),
        answers(operation),
      ),
    );
  });
  return node;
}
