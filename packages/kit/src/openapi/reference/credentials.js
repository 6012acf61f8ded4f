import { apiDocument } from './api-document.js';

// Which credential the samples carry. A pasted one stays in this page's memory and is gone with it.
let chosen = null;
let pasted = '';
const listeners = new Set();

/** Credentials that work on their own come first; a cookie also needs a CSRF token. */
function rank({ type, in: place, scheme }) {
  if (type === 'apiKey' && place === 'header') return 0;
  if (type === 'http') return scheme === 'basic' ? 2 : 1;
  return 3;
}

const schemes = () => apiDocument().components?.securitySchemes ?? {};

/** The names of the schemes, best first. */
export function schemeNames() {
  return Object.keys(schemes()).sort((a, b) => rank(schemes()[a]) - rank(schemes()[b]));
}

export function setCredentials(name, value) {
  chosen = name === '' ? null : name;
  pasted = value.trim();
  for (const listener of listeners) listener();
}

export function onCredentials(listener) {
  listeners.add(listener);
}

/** The scheme a sample of this operation uses: the chosen one where the operation accepts it, else the best it accepts. */
export function schemeOf(operation) {
  const accepted = new Set((operation.security ?? apiDocument().security ?? []).flatMap((way) => Object.keys(way)));
  return accepted.has(chosen) ? chosen : schemeNames().find((name) => accepted.has(name));
}

const SAFE = new Set(['get', 'head', 'options', 'query']);
const quoted = (text) => `"${text.replaceAll(/[\\"$`]/g, (character) => (pasted === '' && character === '$' ? '$' : `\\${character}`))}"`;

/** Lines of a curl command, and the variables a reader has to set first. */
export function credentialLines(operation, method) {
  const name = schemeOf(operation);
  const scheme = name === undefined ? undefined : schemes()[name];
  if (scheme === undefined) return { lines: [], variables: [] };
  const isChosen = pasted !== '' && (chosen === null ? name === schemeNames()[0] : name === chosen);
  const secret = (variable) => (isChosen ? pasted : `$${variable}`);
  const variables = (...names) => (isChosen ? [] : names);
  if (scheme.type === 'apiKey' && scheme.in === 'header')
    return { lines: [`-H ${quoted(`${scheme.name}: ${secret('CREDENTIAL')}`)}`], variables: variables('CREDENTIAL') };
  if (scheme.type === 'apiKey' && scheme.in === 'cookie') {
    const token = SAFE.has(method) ? [] : ['-H "X-CSRF-Token: $CSRF_TOKEN"'];
    return {
      lines: [`-b ${quoted(`${scheme.name}=${secret('CREDENTIAL')}`)}`, ...token],
      variables: [...variables('CREDENTIAL'), ...(token.length === 0 ? [] : ['CSRF_TOKEN (the csrf_token that the login answers)'])],
    };
  }
  if (scheme.type === 'http' && scheme.scheme === 'basic')
    return { lines: ['-u "$USERNAME:$PASSWORD"'], variables: ['USERNAME', 'PASSWORD'] };
  return { lines: [`-H ${quoted(`Authorization: Bearer ${secret('CREDENTIAL')}`)}`], variables: variables('CREDENTIAL') };
}

/** How the chosen credential is given to a generated client, as text of its language. */
export function clientCredential(operation, { named, variable, quote, yes }) {
  const name = schemeOf(operation);
  const scheme = name === undefined ? undefined : schemes()[name];
  if (scheme === undefined) return [];
  const isChosen = pasted !== '' && (chosen === null ? name === schemeNames()[0] : name === chosen);
  const secret = isChosen ? quote(pasted) : variable('CREDENTIAL');
  if (scheme.type === 'apiKey' && scheme.in === 'header')
    return [
      named(
        scheme.name.toLowerCase() === 'x-api-key' ? 'apiKey' : 'headers',
        scheme.name.toLowerCase() === 'x-api-key' ? secret : `{ ${quote(scheme.name)}: ${secret} }`,
      ),
    ];
  if (scheme.type === 'apiKey') return [named('session', yes)];
  return scheme.type === 'http' && scheme.scheme !== 'basic' ? [named('bearer', secret)] : [];
}

/** What a request of this page carries: a pasted key, or the session of this browser. */
export function requestCredential(operation) {
  const name = schemeOf(operation);
  const scheme = name === undefined ? undefined : schemes()[name];
  if (pasted === '' || scheme === undefined || scheme.in === 'cookie') return { headers: {}, isSession: true };
  const headers =
    scheme.type === 'apiKey' ? { [scheme.name]: pasted } : { authorization: `${scheme.scheme === 'basic' ? 'Basic' : 'Bearer'} ${pasted}` };
  return { headers, isSession: false };
}
