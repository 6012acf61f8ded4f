import { isFramed } from '../frame/host.ts';
import { markAnswer, markSilence } from './connection.ts';
import { ApiFault, isWrongProof, readFault, toFault } from './fault.ts';
import { markOwnChange } from './own-changes.ts';
import { sendOnce } from './send-once.ts';
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
  AdminSavedFilters,
  AdminSectionsAnswer,
  AdminSession,
  AdminSiteState,
  AdminView,
  PortalTenantChoice,
} from './shapes.ts';

/** Below the page's own address, wherever a proxy put it; the fragment never counts. */
const base = new URL('api/', document.baseURI);

/** In memory only: a new page asks for it again. */
let csrfToken: string | null = null;

/** In a frame there are no cookies: the session is in the memory of this page, and in no storage. */
let frameSession: string | null = null;
const credentials = isFramed ? 'omit' : 'same-origin';

/** Which tenant this page is about. In another tab the same session may have chosen another one: the server then refuses. */
let pageTenant: string | null = null;

/** A response to a request from before a login says nothing about the session of now. */
let logins = 0;

/** After these the session's own answer says what is left of the site. */
const CLOSING: ReadonlySet<string> = new Set(['permission_denied', 'staff_only', 'tenant_suspended', 'not_a_member']);

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
  readonly ifMatch?: string | undefined;
  readonly key?: string;
  readonly signal?: AbortSignal | undefined;
  /** How long the answer may take. Default: {@link ANSWER_MS}. */
  readonly limitMs?: number;
}

/** Longer than the server waits for its database, so that its own sentence arrives. */
const ANSWER_MS = 15_000;
/** Passwords are expensive to check on purpose. */
const LOGIN_MS = 30_000;
/** A file of 10,000 rows. */
const IMPORT_MS = 600_000;

/** For requests to the application that do not go through here. */
export function requestHeaders(): Record<string, string> {
  if (frameSession !== null) return { 'x-portal-session': frameSession };
  return csrfToken === null ? {} : { 'x-csrf-token': csrfToken };
}

/** An answer with its body: a connection that hangs in the middle is no answer. */
interface Answer {
  readonly response: Response;
  readonly body: unknown;
  readonly fault: ApiFault | null;
}

async function send(
  path: string,
  { method = 'GET', query = {}, body, file, ifMatch, key, signal, limitMs = ANSWER_MS }: RequestOptions,
): Promise<Answer> {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') url.searchParams.set(name, value);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (frameSession !== null) headers['x-portal-session'] = frameSession;
  else if (method !== 'GET' && csrfToken !== null) headers['x-csrf-token'] = csrfToken;
  if (pageTenant !== null) headers['x-portal-tenant'] = pageTenant;
  if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`;
  if (key !== undefined) headers['idempotency-key'] = key;
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (file !== undefined) headers['content-type'] = file.mediaType;
  const limit = new AbortController();
  const timer = window.setTimeout(() => limit.abort(), limitMs);
  try {
    const response = await fetch(url, {
      method,
      headers,
      credentials,
      cache: 'no-store',
      redirect: 'error',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(file === undefined ? {} : { body: file.content }),
      signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]),
    });
    const fault = response.ok ? null : await readFault(response);
    const answer = { response, fault, body: fault === null ? await readBody(response) : undefined };
    markAnswer();
    return answer;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    if (limit.signal.aborted) {
      markSilence('silent');
      const detail = `The server has not answered within ${limitMs / 1000} s.${method === 'GET' ? '' : ' It may have been saved.'}`;
      throw new ApiFault({ status: 0, code: 'no_answer', detail });
    }
    if (error instanceof SyntaxError)
      throw new ApiFault({ status: 502, code: 'unexpected_answer', detail: 'The response cannot be read.' });
    markSilence('unreachable');
    const detail = `The server cannot be reached. Check the connection and try again.${method === 'GET' ? '' : ' It may have been saved.'}`;
    throw new ApiFault({ status: 0, code: 'unreachable', detail });
  } finally {
    window.clearTimeout(timer);
  }
}

/** Successes without a body are 204, and 202 where a mail is on its way: they have no media type either. */
async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  return text === '' && !response.headers.has('content-type') ? undefined : JSON.parse(text);
}

async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const sentAfter = logins;
  let { fault, body } = await send(path, options);
  // Another tab logged in again: the cookie is new and the token here is not. Nothing was done; ask for the token once.
  if (fault?.code === 'csrf_failed' && path !== 'login') {
    const renewal = await readSession().then(() => null, toFault);
    if (renewal === null) ({ fault, body } = await send(path, options));
    else fault = renewal;
  }
  // Nothing was done: the same request goes out again once the person has proved to be there.
  if (fault?.code === 'recent_login_required' && path !== 'account/presence' && frameSession === null && (await askPresence()))
    ({ fault, body } = await send(path, options));
  if (fault === null) return body as T;
  if (!OPEN_PATHS.has(path)) {
    if (fault.status === 401 && !isWrongProof(fault) && sentAfter === logins) onSessionLost();
    if (CLOSING.has(fault.code)) onRefused();
  }
  throw fault;
}

/** Requests whose 401 or 403 is about what was typed, not about the session. */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  'login',
  '../link',
  'session',
  'account/presence',
  'account/reset',
  'account/reset/confirm',
  'account/invitations/accept',
  'account/email/confirm',
]);

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
      limitMs: LOGIN_MS,
      body: { login, password, ...(code === undefined ? {} : { code }) },
    });
    logins += 1;
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
  const renewed = await request<T>(path, { limitMs: LOGIN_MS, ...options });
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
    limitMs: LOGIN_MS,
    body: { token, password },
  });
}

/** Opens a link: its session is in a cookie, or in this page alone where it is in a frame. */
export async function openLink(token: string, framed: boolean): Promise<void> {
  const opened = await request<{ token: string | null }>('../link', { method: 'POST', body: { token, framed } });
  logins += 1;
  frameSession = opened.token;
}

/** The tenants that the person may work in, and the one of now. */
export async function readTenants(signal?: AbortSignal): Promise<PortalTenantChoice> {
  const choice = await request<PortalTenantChoice>('tenants', { signal });
  if (choice.items.length > 0) pageTenant = choice.current ?? '';
  return choice;
}

export async function chooseTenant(id: string): Promise<void> {
  await request(`tenants/${encodeURIComponent(id)}/choose`, { method: 'POST' });
}

export async function logOut(): Promise<void> {
  await request('logout', { method: 'POST' });
  csrfToken = frameSession = null;
}

/** Longer than the server waits for a locked database: what it says then says more than silence. */
const STATE_MS = 12_000;

/** Whom the browser sees the application as. */
export function readView(signal?: AbortSignal): Promise<AdminView> {
  return request('view', { signal });
}

export function beginView(body: Readonly<Record<string, unknown>>): Promise<AdminView> {
  return request('view', { method: 'POST', body });
}

export function endView(): Promise<void> {
  return request('view', { method: 'DELETE' });
}

export function readState(signal?: AbortSignal): Promise<AdminSiteState> {
  return request('state', { signal, limitMs: STATE_MS });
}

export function readOverview(range: AdminRange, signal?: AbortSignal): Promise<AdminOverviewAnswer> {
  return request('overview', { query: { range }, signal });
}

/** Where the browser itself fetches the numbers of the overview as a file. */
export function overviewAddress(range: AdminRange): string {
  const url = new URL('overview/export', base);
  url.searchParams.set('range', range);
  return url.href;
}

export function readSections(page: string, signal?: AbortSignal): Promise<AdminSectionsAnswer> {
  return request(`pages/${encodeURIComponent(page)}`, { signal });
}

export interface ListRequest {
  readonly search: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly sort: string;
  readonly cursor: string;
  readonly limit: number;
  /** The columns that a view shows; none: as this person likes it. */
  readonly columns: readonly string[];
}

/** What narrows and orders a list, as the server and the address name it. */
function narrowing({ search, filters, sort }: Pick<ListRequest, 'search' | 'filters' | 'sort'>): Record<string, string> {
  const named = Object.fromEntries(Object.entries(filters).map(([filter, value]) => [`filter.${filter}`, value]));
  return { search, ...named, sort };
}

export function listRecords(name: string, asked: Omit<ListRequest, 'columns'>, signal?: AbortSignal): Promise<AdminPage> {
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

/** An event stream: records of the list changed, or the one with the id. */
export function newsAddress(name: string, id: string | undefined): string {
  const url = new URL(list(name, 'news'), base);
  if (id !== undefined) url.searchParams.set('id', id);
  return url.href;
}

const MEDIA_TYPES: Readonly<Record<AdminFileFormat, string>> = { csv: 'text/csv', jsonl: 'application/x-ndjson' };

interface ImportAsked {
  readonly format: AdminFileFormat;
  readonly dryRun: boolean;
  readonly upsert: boolean;
  /** By the name of a column of the file: the field that it is; an empty text: it is left out. */
  readonly columns: Readonly<Record<string, string>>;
}

export function importFile(
  name: string,
  file: Blob,
  { format, dryRun, upsert, columns }: ImportAsked,
  signal?: AbortSignal,
): Promise<AdminImportResult> {
  const url = new URLSearchParams(Object.entries(columns).map(([column, field]) => [`column.${column}`, field]));
  if (dryRun) url.set('dry_run', 'true');
  if (upsert) url.set('mode', 'upsert');
  return request(`${list(name, 'import')}?${url.toString()}`, {
    method: 'POST',
    signal,
    limitMs: IMPORT_MS,
    file: { content: file, mediaType: MEDIA_TYPES[format] },
  });
}

/** Records that a picker offers: those that the text finds, or the one with the id. */
export function readChoices(
  name: string,
  asked: { readonly search: string } | { readonly id: string },
  signal?: AbortSignal,
): Promise<AdminChoices> {
  return request(list(name, 'choices'), { query: { ...asked }, signal });
}

export function listSavedFilters(name: string, signal?: AbortSignal): Promise<AdminSavedFilters> {
  return request(list(name, 'filters'), { signal });
}

export function saveFilter(
  name: string,
  asked: ListRequest,
  view: Pick<AdminSavedFilter, 'name' | 'shared_with'>,
): Promise<AdminSavedFilter> {
  const entries = Object.entries({ ...narrowing(asked), columns: asked.columns.join(',') }).filter(([, value]) => value !== '');
  return request(list(name, 'filters'), { method: 'POST', body: { ...view, query: new URLSearchParams(entries).toString() } });
}

export function deleteSavedFilter(name: string, id: string): Promise<void> {
  return request(list(name, 'filters', id), { method: 'DELETE' });
}

export function readRecord(name: string, id: string, range?: AdminRange, signal?: AbortSignal): Promise<AdminRecord> {
  return request(resource(name, id), { query: { range }, signal });
}

// Results may carry a secret that is shown once: they are returned to the caller and not stored, also not in the query cache.

/** Done once, however often it is sent. What was done before and whose response got lost has no secret to show any more. */
async function change(path: string, options: Pick<RequestOptions, 'method' | 'body' | 'ifMatch' | 'signal'>): Promise<AdminResult> {
  const { method, body, ifMatch, signal } = options;
  const identity = JSON.stringify([method, path, ifMatch, body]);
  try {
    return (
      (await sendOnce(identity, (key) => request<AdminResult>(path, { ...options, key }), signal)) ?? {
        message: 'It was done; only its response got lost.',
      }
    );
  } finally {
    markOwnChange();
  }
}

export function createRecord(name: string, fields: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<AdminResult> {
  return change(resource(name), { method: 'POST', body: fields, signal });
}

interface RecordUpdate {
  readonly fields: Readonly<Record<string, unknown>>;
  /** Of the form: a record that was changed meanwhile is then not overwritten. */
  readonly tag?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export function updateRecord(name: string, id: string, { fields, tag, signal }: RecordUpdate): Promise<AdminResult> {
  return change(resource(name, id), { method: 'PATCH', body: fields, ifMatch: tag, signal });
}

export function removeRecord(name: string, id: string): Promise<AdminResult> {
  return change(resource(name, id), { method: 'DELETE' });
}

export function runAction(
  name: string,
  action: string,
  ids: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): Promise<AdminResult> {
  return change(resource(name, 'actions', action), { method: 'POST', body: { ids, fields } });
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
