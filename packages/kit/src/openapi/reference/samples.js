import { pageFacts, resolve, serverUrl } from './api-document.js';
import { clientCredential, credentialLines } from './credentials.js';
import { example, mediaExample } from './example.js';

export const LANGUAGES = { curl, TypeScript: typescript, Python: python };

const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

/** The body that an operation takes: its media type, and an example where it is JSON. */
export function bodyOf(operation) {
  const [type, media] = Object.entries(resolve(operation.requestBody).content ?? {})[0] ?? [];
  if (type === undefined) return undefined;
  return { type, value: type.includes('json') ? mediaExample(media, true) : undefined };
}

/** Values of the parameters that a request needs. */
function needed(parameters) {
  return parameters
    .filter((parameter) => parameter.in === 'path' || (parameter.in === 'query' && parameter.required))
    .map(({ name, in: place, schema, example: given }) => ({ name, in: place, value: given ?? example(schema ?? {}) }));
}

export function requestUrl(path, values) {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name) =>
    encodeURIComponent(String(values.find((each) => each.in === 'path' && each.name === name)?.value ?? '')),
  );
  const query = values
    .filter((each) => each.in === 'query')
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return `${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`;
}

function curl({ path, method, operation, parameters }) {
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${quote(`${serverUrl()}${requestUrl(path, needed(parameters))}`)}`,
    ...credentialLines(operation, method).lines,
  ];
  const body = bodyOf(operation);
  if (body)
    lines.push(
      `-H ${quote(`Content-Type: ${body.type}`)}`,
      `--data ${quote(body.value === undefined ? '@file' : JSON.stringify(body.value))}`,
    );
  return lines.join(' \\\n  ');
}

const indented = (text, by) => text.replaceAll('\n', `\n${by}`);

/** The call of a generated client: its arguments by name, the body last. */
function call(parameters, operation, write) {
  const body = bodyOf(operation);
  const args = needed(parameters).map(({ name, value }) => write.named(name, write.value(value)));
  if (body) args.push(write.named('body', body.value === undefined ? write.file : write.value(body.value)));
  return args;
}

const TYPESCRIPT = {
  named: (name, value) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}: ${value}`,
  value: (value) => indented(JSON.stringify(value, null, 2).replaceAll(/"([A-Za-z_$][\w$]*)":/g, '$1:'), '  '),
  variable: (name) => `process.env.${name} ?? ''`,
  quote: JSON.stringify,
  yes: 'true',
  file: 'file',
};

/** A live list has an ordinary response, too. */
function isOnlyStream({ responses = {} }) {
  const media = Object.values(responses).map((response) => resolve(response).content ?? {});
  return media.some((content) => content['text/event-stream'] && Object.keys(content).length === 1);
}

function typescript({ operation, parameters }) {
  const names = pageFacts().clients[operation.operationId];
  if (names === undefined) return undefined;
  const args = call(parameters, operation, TYPESCRIPT);
  const options = [`baseUrl: ${JSON.stringify(serverUrl())}`, ...clientCredential(operation, TYPESCRIPT)];
  const sent = `client.${names.join('.')}(${args.length === 0 ? '' : `{ ${args.join(', ')} }`})`;
  const isStream = isOnlyStream(operation);
  return [
    "import { createClient } from './api.ts';",
    '',
    `const client = createClient({ ${options.join(', ')} });`,
    isStream ? `for await (const { event, data } of ${sent}) console.log(event, data);` : `console.log(await ${sent});`,
  ].join('\n');
}

const snake = (name) => name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
const KEYWORDS = new Set('False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self call'.split(' ')); // prettier-ignore
const pythonName = (name) => {
  const plain = name.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_');
  return KEYWORDS.has(plain) ? `${plain}_` : plain;
};

const PYTHON = {
  named: (name, value) => `${pythonName(snake(name) === 'api_key' ? 'api_key' : name)}=${value}`,
  value: (value) => pythonValue(value),
  variable: (name) => `os.environ["${name}"]`,
  quote: JSON.stringify,
  yes: 'True',
  file: 'open("file", "rb")',
};

function pythonValue(value) {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

function python({ operation, parameters }) {
  const names = pageFacts().clients[operation.operationId];
  if (names === undefined) return undefined;
  const [group, method] = names.map((name) => pythonName(snake(name)));
  const options = [JSON.stringify(serverUrl()), ...clientCredential(operation, PYTHON)];
  const sent = `client.${group}.${method}(${call(parameters, operation, PYTHON).join(', ')})`;
  const isStream = isOnlyStream(operation);
  return [
    'import os',
    'import api',
    '',
    `client = api.Client(${options.join(', ')})`,
    ...(isStream ? [`for event in ${sent}:`, '    print(event.event, event.data)'] : [`print(${sent})`]),
  ].join('\n');
}
