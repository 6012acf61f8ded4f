import { markConnection } from './connection.ts';
import { ApiFault, readFault, toFault } from './fault.ts';
import type { AdminOverviewAnswer, AdminPage, AdminPreview, AdminRange, AdminRecord, AdminResult, AdminSession } from './shapes.ts';

/** Below the page's own address, wherever a proxy put it; the fragment never counts. */
const base = new URL('api/', document.baseURI);

/** In memory only: a new page asks for it again. */
let csrfToken: string | null = null;

let onSessionLost: () => void = () => {};
let onRefused: () => void = () => {};

/** Who is told when an answer says that nobody is logged in, or that the user may not be here. */
export function watchSession(handlers: { readonly lost: () => void; readonly refused: () => void }): void {
  onSessionLost = handlers.lost;
  onRefused = handlers.refused;
}

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly ifMatch?: string;
  readonly signal?: AbortSignal | undefined;
}

/** For requests to the application that do not go through here. */
export function requestHeaders(): Record<string, string> {
  return csrfToken === null ? {} : { 'x-csrf-token': csrfToken };
}

async function send(path: string, { method = 'GET', query = {}, body, ifMatch, signal }: RequestOptions): Promise<Response> {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') url.searchParams.set(name, value);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (method !== 'GET' && csrfToken !== null) headers['x-csrf-token'] = csrfToken;
  if (ifMatch !== undefined) headers['if-match'] = ifMatch;
  if (body !== undefined) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(url, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    markConnection(true);
    return response;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    markConnection(false);
    throw new ApiFault({ status: 0, code: 'unreachable', detail: 'The server cannot be reached. Check the connection and try again.' });
  }
}

async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  let response = await send(path, options);
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  let fault = await readFault(response);
  // Another tab logged in again: the cookie is new and the token here is not. Nothing was done; ask for the token once.
  if (fault.code === 'csrf_failed' && path !== 'login') {
    const renewal = await readSession().then(() => null, toFault);
    response = renewal === null ? await send(path, options) : response;
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
    fault = renewal ?? (await readFault(response));
  }
  if (path !== 'login' && path !== 'session') {
    if (fault.status === 401) onSessionLost();
    if (fault.code === 'permission_denied' || fault.code === 'staff_only') onRefused();
  }
  throw fault;
}

const resource = (name: string, ...rest: string[]): string => ['resources', name, ...rest].map(encodeURIComponent).join('/');

export async function readSession(signal?: AbortSignal): Promise<AdminSession> {
  try {
    const session = await request<AdminSession>('session', { signal });
    csrfToken = session.csrf_token;
    return session;
  } catch (error) {
    // Whoever is not staff may still log out.
    if (error instanceof ApiFault && error.csrfToken !== null) csrfToken = error.csrfToken;
    throw error;
  }
}

export async function logIn(login: string, password: string): Promise<AdminSession> {
  const session = await request<AdminSession>('login', { method: 'POST', body: { login, password } });
  csrfToken = session.csrf_token;
  return session;
}

export async function logOut(): Promise<void> {
  await request('logout', { method: 'POST' });
  csrfToken = null;
}

export function readOverview(range: AdminRange, signal?: AbortSignal): Promise<AdminOverviewAnswer> {
  return request('overview', { query: { range }, signal });
}

export interface ListRequest {
  readonly search: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly sort: string;
  readonly cursor: string;
  readonly limit: number;
}

export function listRecords(name: string, { search, filters, sort, cursor, limit }: ListRequest, signal?: AbortSignal): Promise<AdminPage> {
  const named = Object.fromEntries(Object.entries(filters).map(([filter, value]) => [`filter.${filter}`, value]));
  return request(resource(name), { query: { search, sort, cursor, limit: String(limit), ...named }, signal });
}

export function readRecord(name: string, id: string, signal?: AbortSignal): Promise<AdminRecord> {
  return request(resource(name, id), { signal });
}

// Results may carry a secret that is shown once: they are returned to the caller and not stored, also not in the query cache.

export function createRecord(name: string, fields: Readonly<Record<string, unknown>>): Promise<AdminResult> {
  return request(resource(name), { method: 'POST', body: fields });
}

/** `version`: of the form; a record that was changed meanwhile is then refused. */
export function updateRecord(name: string, id: string, fields: Readonly<Record<string, unknown>>, version?: number): Promise<AdminResult> {
  return request(resource(name, id), { method: 'PATCH', body: fields, ...(version === undefined ? {} : { ifMatch: `"${version}"` }) });
}

export function removeRecord(name: string, id: string): Promise<AdminResult> {
  return request(resource(name, id), { method: 'DELETE' });
}

export function runAction(
  name: string,
  action: string,
  ids: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): Promise<AdminResult> {
  return request(resource(name, 'actions', action), { method: 'POST', body: { ids, fields } });
}

/** What the action would do; nothing is changed. */
export function previewAction(
  name: string,
  action: string,
  ids: readonly string[],
  fields: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<AdminPreview> {
  return request(resource(name, 'actions', action, 'preview'), { method: 'POST', body: { ids, fields }, signal });
}
