import { markConnection } from './connection.ts';
import { ApiFault, readFault, toFault } from './fault.ts';
import type {
  AdminChoices,
  AdminFileFormat,
  AdminImportResult,
  AdminLogin,
  AdminOverviewAnswer,
  AdminPage,
  AdminPreview,
  AdminRange,
  AdminRecord,
  AdminResult,
  AdminSavedFilter,
  AdminSession,
} from './shapes.ts';

/** Below the page's own address, wherever a proxy put it; the fragment never counts. */
const base = new URL('api/', document.baseURI);

/** In memory only: a new page asks for it again. */
let csrfToken: string | null = null;

let onSessionLost: () => void = () => {};
let onRefused: () => void = () => {};
/** Asks the person to prove to be there; false when that was cancelled. */
let askPresence: () => Promise<boolean> = () => Promise.resolve(false);

export function watchPresence(ask: () => Promise<boolean>): void {
  askPresence = ask;
}

/** Who is told when an answer says that no user is logged in, or that the user may not be here. */
export function watchSession(handlers: { readonly lost: () => void; readonly refused: () => void }): void {
  onSessionLost = handlers.lost;
  onRefused = handlers.refused;
}

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly file?: { readonly content: Blob; readonly mediaType: string };
  readonly ifMatch?: string;
  readonly signal?: AbortSignal | undefined;
}

/** For requests to the application that do not go through here. */
export function requestHeaders(): Record<string, string> {
  return csrfToken === null ? {} : { 'x-csrf-token': csrfToken };
}

async function send(path: string, { method = 'GET', query = {}, body, file, ifMatch, signal }: RequestOptions): Promise<Response> {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') url.searchParams.set(name, value);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (method !== 'GET' && csrfToken !== null) headers['x-csrf-token'] = csrfToken;
  if (ifMatch !== undefined) headers['if-match'] = ifMatch;
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (file !== undefined) headers['content-type'] = file.mediaType;
  try {
    const response = await fetch(url, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(file === undefined ? {} : { body: file.content }),
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
  // Nothing was done: the same request goes out again once the person has proved to be there.
  if (fault.code === 'recent_login_required' && path !== 'account/presence' && (await askPresence())) {
    response = await send(path, options);
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
    fault = await readFault(response);
  }
  if (!OPEN_PATHS.has(path)) {
    if (fault.status === 401 && !isWrongProof(fault)) onSessionLost();
    if (fault.code === 'permission_denied' || fault.code === 'staff_only') onRefused();
  }
  throw fault;
}

/** Requests whose 401 or 403 is about what was typed, not about the session. */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  'login',
  'session',
  'account/presence',
  'account/reset',
  'account/reset/confirm',
  'account/invitations/accept',
  'account/email/confirm',
]);

/** A wrong password or code in a form of the account: the session goes on. */
function isWrongProof({ code }: ApiFault): boolean {
  return code === 'invalid_credentials' || code === 'invalid_one_time_code' || code === 'one_time_code_required';
}

const resource = (name: string, ...rest: string[]): string => ['resources', name, ...rest].map(encodeURIComponent).join('/');

export async function readSession(signal?: AbortSignal): Promise<AdminSession> {
  try {
    const session = await request<AdminSession>('session', { signal });
    csrfToken = session.csrf_token;
    return session;
  } catch (error) {
    // A user who is not staff may still log out.
    if (error instanceof ApiFault && error.csrfToken !== null) csrfToken = error.csrfToken;
    throw error;
  }
}

/** Where to log in. Open to everyone. */
export function readLogin(signal?: AbortSignal): Promise<AdminLogin> {
  return request('login', { signal });
}

/** Throws 401 `one_time_code_required` where `code` is missing. */
export async function logIn(login: string, password: string, code?: string): Promise<AdminSession> {
  try {
    const session = await request<AdminSession>('login', {
      method: 'POST',
      body: { login, password, ...(code === undefined ? {} : { code }) },
    });
    csrfToken = session.csrf_token;
    return session;
  } catch (error) {
    // Logged in, and one-time codes have to be set up first.
    if (error instanceof ApiFault && error.csrfToken !== null) csrfToken = error.csrfToken;
    throw error;
  }
}

// The user's own account: the routes of AccountController. Those that renew the session answer with its new token.

interface RenewedSession {
  readonly csrf_token: string;
}

async function renewing<T extends RenewedSession>(path: string, options: RequestOptions): Promise<T> {
  const renewed = await request<T>(path, options);
  csrfToken = renewed.csrf_token;
  return renewed;
}

export interface OwnSession {
  readonly id: string;
  readonly current: boolean;
  readonly device: string | null;
  readonly address: string | null;
  readonly created_at: string;
  readonly seen_at: string;
}

export interface OwnFactor {
  readonly enabled: boolean;
  readonly required: boolean;
  readonly recovery_codes_left: number;
}

export interface NewFactor {
  readonly secret: string;
  readonly uri: string;
}

export async function provePresence(password: string, code?: string): Promise<void> {
  await renewing('account/presence', { method: 'POST', body: { password, ...(code === undefined ? {} : { code }) } });
}

export async function changePassword(current_password: string, new_password: string): Promise<void> {
  await renewing('account/password', { method: 'POST', body: { current_password, new_password } });
}

export async function listOwnSessions(signal?: AbortSignal): Promise<readonly OwnSession[]> {
  return (await request<{ items: readonly OwnSession[] }>('account/sessions', { signal })).items;
}

export function endOwnSession(id: string): Promise<void> {
  return request(`account/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
}

export function endOtherSessions(): Promise<{ readonly ended: number }> {
  return request('account/sessions/end-others', { method: 'POST' });
}

export function readFactor(signal?: AbortSignal): Promise<OwnFactor> {
  return request('account/factor', { signal });
}

export function beginFactor(): Promise<NewFactor> {
  return request('account/factor', { method: 'POST' });
}

/** The recovery codes, which are shown once. */
export async function confirmFactor(code: string): Promise<readonly string[]> {
  const answer = await renewing<RenewedSession & { recovery_codes: readonly string[] }>('account/factor/confirm', {
    method: 'POST',
    body: { code },
  });
  return answer.recovery_codes;
}

export async function renewRecoveryCodes(): Promise<readonly string[]> {
  return (await request<{ recovery_codes: readonly string[] }>('account/factor/recovery-codes', { method: 'POST' })).recovery_codes;
}

export async function removeFactor(): Promise<void> {
  await renewing('account/factor', { method: 'DELETE' });
}

export function askForReset(login: string): Promise<void> {
  return request('account/reset', { method: 'POST', body: { login } });
}

/** The new address gets a link. */
export function askForEmail(email: string): Promise<void> {
  return request('account/email', { method: 'POST', body: { email } });
}

export function confirmEmail(token: string): Promise<void> {
  return request('account/email/confirm', { method: 'POST', body: { token } });
}

export function choosePassword(purpose: 'reset' | 'invitation', token: string, password: string): Promise<void> {
  return request(purpose === 'reset' ? 'account/reset/confirm' : 'account/invitations/accept', {
    method: 'POST',
    body: { token, password },
  });
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

/** What narrows and orders a list, as the server and the address name it. */
function narrowing({ search, filters, sort }: Pick<ListRequest, 'search' | 'filters' | 'sort'>): Record<string, string> {
  const named = Object.fromEntries(Object.entries(filters).map(([filter, value]) => [`filter.${filter}`, value]));
  return { search, ...named, sort };
}

export function listRecords(name: string, asked: ListRequest, signal?: AbortSignal): Promise<AdminPage> {
  const { cursor, limit } = asked;
  return request(resource(name), { query: { ...narrowing(asked), cursor, limit: String(limit) }, signal });
}

const list = (name: string, ...rest: string[]): string => ['lists', name, ...rest].map(encodeURIComponent).join('/');

/** Where the browser itself fetches the list as a file: it may be larger than this page should hold. */
export function exportAddress(name: string, asked: ListRequest, format: AdminFileFormat): string {
  const url = new URL(list(name, 'export'), base);
  for (const [key, value] of Object.entries<string>({ format, ...narrowing(asked) })) if (value !== '') url.searchParams.set(key, value);
  return url.href;
}

const MEDIA_TYPES: Readonly<Record<AdminFileFormat, string>> = { csv: 'text/csv', jsonl: 'application/x-ndjson' };

export function importFile(
  name: string,
  file: Blob,
  { format, dryRun, upsert }: { readonly format: AdminFileFormat; readonly dryRun: boolean; readonly upsert: boolean },
): Promise<AdminImportResult> {
  const query = { dry_run: dryRun ? 'true' : undefined, mode: upsert ? 'upsert' : undefined };
  return request(list(name, 'import'), { method: 'POST', query, file: { content: file, mediaType: MEDIA_TYPES[format] } });
}

/** Records that a picker offers: those that the text finds, or the one with the id. */
export function readChoices(
  name: string,
  asked: { readonly search: string } | { readonly id: string },
  signal?: AbortSignal,
): Promise<AdminChoices> {
  return request(list(name, 'choices'), { query: { ...asked }, signal });
}

export async function listSavedFilters(name: string, signal?: AbortSignal): Promise<readonly AdminSavedFilter[]> {
  const { items } = await request<{ items: readonly AdminSavedFilter[] }>(list(name, 'filters'), { signal });
  return items;
}

export function saveFilter(name: string, called: string, asked: ListRequest): Promise<AdminSavedFilter> {
  const entries = Object.entries(narrowing(asked)).filter(([, value]) => value !== '');
  return request(list(name, 'filters'), { method: 'POST', body: { name: called, query: new URLSearchParams(entries).toString() } });
}

export function deleteSavedFilter(name: string, id: string): Promise<void> {
  return request(list(name, 'filters', id), { method: 'DELETE' });
}

export function readRecord(name: string, id: string, range?: AdminRange, signal?: AbortSignal): Promise<AdminRecord> {
  return request(resource(name, id), { query: { range }, signal });
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
