import { pageFacts, resolve, serverUrl } from './api-document.js';
import { requestCredential } from './credentials.js';
import { el } from './dom.js';
import { bodyOf, requestUrl } from './samples.js';

const SAFE = new Set(['get', 'head', 'options', 'query']);
/** What is shown of a response, and of a stream in this time. */
const SHOWN_MAX = 100_000;
const STREAM_MS = 5_000;

/** A form that sends the request from this page, with the pasted key or the session of this browser. Requests go to the origin of the page. */
export function tryIt({ path, method, operation, parameters }) {
  const fields = parameters.filter(({ in: place }) => place === 'path' || place === 'query').map((parameter) => fieldOf(parameter));
  const body = bodyOf(operation);
  const isForm = body?.type.startsWith('multipart/') === true;
  const content =
    body === undefined || isForm
      ? undefined
      : body.value === undefined
        ? el('input', { type: 'file', 'aria-label': 'Body' })
        : el('textarea', { rows: 8, spellcheck: 'false', 'aria-label': 'Body' });
  if (content?.tagName === 'TEXTAREA') content.value = JSON.stringify(body.value, null, 2);
  const button = el('button', { class: 'button' }, 'Send');
  const output = el('div', { class: 'try-result', role: 'status', 'aria-live': 'polite' });
  const form = el(
    'form',
    { class: 'try' },
    fields.map(({ node }) => node),
    content && el('label', {}, `Body (${body.type})`, content),
    isForm ? el('p', {}, 'Forms with files cannot be sent from this page: use a sample.') : button,
    output,
  );
  const submit = async () => {
    if (method === 'delete' && !confirm(`Send DELETE ${path}? It is done on the real data.`)) return;
    button.disabled = true;
    output.replaceChildren('Sending …');
    try {
      const values = fields
        .filter(({ input }) => input.value !== '')
        .map(({ parameter, input }) => ({ name: parameter.name, in: parameter.in, value: input.value }));
      const sent = content === undefined ? undefined : content.tagName === 'TEXTAREA' ? content.value : content.files[0];
      output.replaceChildren(...(await send({ path, method, operation }, values, body?.type, sent)));
    } catch (error) {
      output.replaceChildren(`The request failed: ${error.message}`);
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  return el('details', { class: 'answer' }, el('summary', {}, 'Try it'), form);
}

function fieldOf(parameter) {
  const schema = resolve(parameter.schema ?? {});
  const isRequired = parameter.in === 'path' || parameter.required === true;
  const input = schema.enum
    ? el(
        'select',
        { required: isRequired },
        (isRequired ? [] : ['']).concat(schema.enum.map(String)).map((value) => el('option', {}, value)),
      )
    : el('input', { type: 'text', required: isRequired, autocomplete: 'off', spellcheck: 'false' });
  return { parameter, input, node: el('label', {}, `${parameter.name}${isRequired ? ' (required)' : ''}`, input) };
}

/** The CSRF token of the session, which unsafe requests need. */
async function csrfToken() {
  const { session } = pageFacts();
  if (session === null) return undefined;
  const response = await fetch(session, { headers: { accept: 'application/json' } });
  return response.ok ? ((await response.json()).csrf_token ?? undefined) : undefined;
}

async function send({ path, method, operation }, values, type, body) {
  const { headers, isSession } = requestCredential(operation);
  const token = isSession && !SAFE.has(method) ? await csrfToken() : undefined;
  const stop = new AbortController();
  // A server elsewhere is out of reach of this page's policy.
  const base = serverUrl().startsWith(location.origin) ? serverUrl() : location.origin;
  const response = await fetch(`${base}${requestUrl(path, values)}`, {
    method: method.toUpperCase(),
    credentials: isSession ? 'same-origin' : 'omit',
    headers: {
      ...headers,
      ...(type === undefined || body === undefined ? {} : { 'content-type': type }),
      ...(token ? { 'x-csrf-token': token } : {}),
    },
    ...(body === undefined ? {} : { body }),
    signal: stop.signal,
  });
  const media = response.headers.get('content-type') ?? '';
  const isStream = media.startsWith('text/event-stream');
  const text = await readSome(response, isStream ? STREAM_MS : 60_000, stop);
  const status = el('span', { class: `status ${response.ok ? 'good' : 'bad'}` }, String(response.status));
  const names = ['etag', 'location', 'link', 'retry-after', 'ratelimit', 'x-request-id'].filter((name) => response.headers.has(name));
  return [
    el('p', {}, status, ' ', media),
    names.length > 0 &&
      el(
        'ul',
        { class: 'tree' },
        names.map((name) => el('li', {}, el('span', { class: 'name' }, name), ` ${response.headers.get(name)}`)),
      ),
    text !== '' && el('pre', { tabindex: '0' }, el('code', {}, media.includes('json') ? prettyText(text) : text)),
  ].filter(Boolean);
}

function prettyText(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The beginning of a response: a stream has no end, and a file may be large. */
async function readSome(response, ms, stop) {
  if (response.body === null) return '';
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const timer = setTimeout(() => stop.abort(), ms);
  try {
    while (text.length < SHOWN_MAX) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
    stop.abort();
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return `${text.slice(0, SHOWN_MAX)}\n…`;
}
