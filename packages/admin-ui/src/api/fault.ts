/** A fault of one value that was sent; `field` is its name in the form. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
  /** Of a file: the row it is in. */
  readonly row: number | null;
}

/** Why a request did not do what was asked. `status` 0: no answer came. */
export class ApiFault extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: readonly FieldFault[];
  readonly retryAfterSeconds: number | null;
  readonly requestId: string | null;
  readonly csrfToken: string | null;

  constructor(fault: {
    readonly status: number;
    readonly code: string;
    readonly detail: string;
    readonly fields?: readonly FieldFault[];
    readonly retryAfterSeconds?: number | null;
    readonly requestId?: string | null;
    readonly csrfToken?: string | null;
  }) {
    super(fault.detail);
    this.name = 'ApiFault';
    this.status = fault.status;
    this.code = fault.code;
    this.fields = fault.fields ?? [];
    this.retryAfterSeconds = fault.retryAfterSeconds ?? null;
    this.requestId = fault.requestId ?? null;
    this.csrfToken = fault.csrfToken ?? null;
  }
}

export function toFault(error: unknown): ApiFault {
  if (error instanceof ApiFault) return error;
  return new ApiFault({
    status: 0,
    code: 'page_error',
    detail: error instanceof Error ? error.message : 'Something went wrong in this page.',
  });
}

/** A wrong password or code in a form of the account: the session goes on. */
export function isWrongProof({ code }: ApiFault): boolean {
  return code === 'invalid_credentials' || code === 'invalid_one_time_code' || code === 'one_time_code_required';
}

/** The session ended: the site asks for a login on top of the page, and the page has nothing to say about it. */
export function isSessionLost(fault: ApiFault): boolean {
  return fault.status === 401 && !isWrongProof(fault);
}

/** Whether the change was made is not known: no answer came, or one of a proxy. */
export function isUnsettled({ status, code }: ApiFault): boolean {
  return code === 'no_answer' || code === 'unreachable' || code === 'request_in_progress' || status === 502 || status === 504;
}

/** What went wrong, in two or three words. */
export function titleOf({ status, code }: ApiFault): string {
  if (status === 0) return code === 'unreachable' ? 'Server not reachable' : code === 'no_answer' ? 'No answer' : 'Page error';
  if (code === 'recent_login_required') return 'Confirmation needed';
  if (code === 'tenant_suspended') return 'Suspended';
  if (code === 'invalid_link') return 'Link not valid';
  if (status === 401) return 'Login failed';
  if (status === 403) return code === 'csrf_failed' ? 'Session out of date' : 'Not allowed';
  if (status === 404) return 'Not found';
  if (status === 409) return 'Not possible now';
  if (status === 412) return 'Record changed';
  if (status === 422) return 'Check the values';
  if (status === 429) return 'Too many requests';
  return status >= 500 ? 'Server error' : 'Request refused';
}

/** What happened, and what to do about it, in a sentence or two. */
export function explain(fault: ApiFault): string {
  if (fault.status === 0) return fault.message;
  if (fault.status === 429) {
    const wait = fault.retryAfterSeconds;
    return `Too many requests. ${wait === null ? 'Wait a moment and try again.' : `Try again in ${wait} ${wait === 1 ? 'second' : 'seconds'}.`}`;
  }
  if (fault.code === 'tenant_suspended')
    return 'This organization is suspended: nobody can work in it for now. Nothing is lost; everything continues when it is resumed.';
  if (fault.code === 'not_a_member') return 'This organization was deleted, or you are no longer a member of it.';
  if (fault.code === 'csrf_failed') return 'The session of this page is out of date. Load the page again.';
  if (fault.status === 404) return 'This record does not exist or was deleted.';
  if (fault.status >= 500) {
    const where = fault.requestId === null ? '' : ` The cause is in the server log under request ${fault.requestId}.`;
    return `${fault.message} Try again.${where}`;
  }
  return fault.message;
}

/** Reads a problem document; whatever a proxy answered instead becomes a fault too. */
export async function readFault(response: Response): Promise<ApiFault> {
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const document = await readDocument(response);
  const text = (name: string): string | null => (typeof document[name] === 'string' ? document[name] : null);
  return new ApiFault({
    status: response.status,
    code: text('code') ?? 'unexpected_answer',
    detail: text('detail') ?? `The server returned status ${response.status}.`,
    fields: fieldFaults(document['errors']),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
    requestId: text('request_id'),
    csrfToken: text('csrf_token'),
  });
}

async function readDocument(response: Response): Promise<Record<string, unknown>> {
  try {
    const document: unknown = await response.json();
    return typeof document === 'object' && document !== null ? (document as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Schemas say `must be an integer`; below a field that is a sentence. */
function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A location is `['body', 'url']`, `['body', 'events', 0]`, `['body', 'fields', 'owner']` for an action's field, or `['query', 'filter.status']`. */
function fieldFaults(errors: unknown): FieldFault[] {
  if (!Array.isArray(errors)) return [];
  return errors.flatMap((error: unknown) => {
    if (typeof error !== 'object' || error === null) return [];
    const { location, message } = error as { location?: unknown; message?: unknown };
    const names = Array.isArray(location)
      ? location.filter((part): part is string => typeof part === 'string' && part !== 'body' && part !== 'query')
      : [];
    const field = names[0] === 'fields' ? names[1] : names[0];
    const row = Array.isArray(location) && location[0] === 'body' && typeof location[1] === 'number' ? location[1] : null;
    return [{ field: field ?? '', row, message: typeof message === 'string' ? upperFirst(message) : 'This value is not accepted.' }];
  });
}
