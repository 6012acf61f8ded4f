/** The document being shown. */
let api = {};

export async function loadDocument(address) {
  const response = await fetch(address, { headers: { accept: 'application/json' } });
  if (response.status === 401) throw new Error('Log in first, then load this page again.');
  if (!response.ok) throw new Error(`openapi.json answered ${response.status}`);
  api = await response.json();
  return api;
}

export const apiDocument = () => api;

/** Where examples are made outside a page. */
export const useDocument = (document) => void (api = document);

/** What the document cannot say: names of client methods, and where a session's CSRF token is. */
let facts = { clients: {}, session: null };

export async function loadFacts(address) {
  const response = await fetch(address, { headers: { accept: 'application/json' } }).catch(() => undefined);
  if (response?.ok) facts = await response.json();
}

export const pageFacts = () => facts;

/** Where requests go: the first server of the document; a relative one is below this page's origin. */
export function serverUrl() {
  const base = (api.servers?.[0]?.url ?? '').replace(/\/$/, '');
  return /^https?:/.test(base) ? base : `${location.origin}${base}`;
}

/** Follows a reference inside the document. */
export function resolve(value) {
  let current = value;
  for (let hops = 0; current && typeof current.$ref === 'string' && hops < 20; hops += 1) {
    current = current.$ref
      .replace(/^#\//, '')
      .split('/')
      .reduce((node, part) => node?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], api);
  }
  return current ?? {};
}

export const refName = (schema) => (typeof schema?.$ref === 'string' ? schema.$ref.split('/').pop() : null);
