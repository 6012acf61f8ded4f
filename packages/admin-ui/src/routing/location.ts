/** Where the site is: everything lives in the fragment, so that the document's own address never changes. */
export type Place =
  | { readonly page: 'overview' }
  | { readonly page: 'list'; readonly resource: string }
  | { readonly page: 'create'; readonly resource: string }
  | { readonly page: 'import'; readonly resource: string }
  | { readonly page: 'record'; readonly resource: string; readonly id: string }
  | { readonly page: 'edit'; readonly resource: string; readonly id: string }
  | { readonly page: 'account' }
  | { readonly page: 'unknown' };

export interface Location {
  readonly place: Place;
  readonly params: URLSearchParams;
}

export type Params = Readonly<Record<string, string | undefined>>;

/** `#/api-keys?search=ci`, `#/api-keys/<id>`, `#/api-keys/<id>/edit`, `#/api-keys/-/new`, `#/api-keys/-/import`. */
export function parseHash(hash: string): Location {
  const [path, query] = split(hash.replace(/^#/, ''));
  return { place: parsePath(path), params: new URLSearchParams(query) };
}

function split(text: string): [string, string] {
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function parsePath(path: string): Place {
  const parts = path.split('/').filter((part) => part !== '');
  const [resource, id, verb] = parts.map(decode);
  if (parts.length === 0) return { page: 'overview' };
  if (resource === undefined || parts.length > 3) return { page: 'unknown' };
  if (resource === '-') return id === 'account' && verb === undefined ? { page: 'account' } : { page: 'unknown' };
  if (id === undefined) return { page: 'list', resource };
  if (verb === undefined) return { page: 'record', resource, id };
  if (id === '-' && verb === 'new') return { page: 'create', resource };
  if (id === '-' && verb === 'import') return { page: 'import', resource };
  return verb === 'edit' ? { page: 'edit', resource, id } : { page: 'unknown' };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hashOf(place: Place, params: Params = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''));
  return `#${pathOf(place)}${query.size === 0 ? '' : `?${query.toString()}`}`;
}

function pathOf(place: Place): string {
  if (place.page === 'overview' || place.page === 'unknown') return '/';
  if (place.page === 'account') return '/-/account';
  const list = `/${encodeURIComponent(place.resource)}`;
  if (place.page === 'list') return list;
  if (place.page === 'create') return `${list}/-/new`;
  if (place.page === 'import') return `${list}/-/import`;
  const record = `${list}/${encodeURIComponent(place.id)}`;
  return place.page === 'edit' ? `${record}/edit` : record;
}

/** The list of a resource with filters set: where tiles and tables lead. */
export function listHash(resource: string, filters: Readonly<Record<string, string>> = {}): string {
  return hashOf({ page: 'list', resource }, Object.fromEntries(Object.entries(filters).map(([name, value]) => [`filter.${name}`, value])));
}
