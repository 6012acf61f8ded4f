/** What became of a request: `accepted`, or the code of its refusal. */
type Outcome = string;
type Caller = 'anonymous' | 'writer' | 'reader' | 'somebody';
type Outcomes = Readonly<Record<Caller, readonly Outcome[]>>;

const forAll = (...outcomes: readonly Outcome[]): Outcomes => ({
  anonymous: outcomes,
  writer: outcomes,
  reader: outcomes,
  somebody: outcomes,
});
/** Callers have to be known; which of the outcomes they get depends on what is stored. */
const forUsers = (...outcomes: readonly Outcome[]): Outcomes => ({ ...forAll(...outcomes), anonymous: ['not_authenticated'] });

const accepted = forAll('accepted');
/** About one row: half of the keys are drawn, and rows are deleted on the way. */
const readsRow = forAll('accepted', 'not_found');
/** Rows belong to the caller who created them. */
const writesOwnRow = forUsers('accepted', 'not_found', 'permission_denied');
/** `X-Test-User` is not a session. */
const needsSession = forAll('not_authenticated');
/** No link was ever sent. */
const needsLink = forAll('invalid_link');

/**
 * Outcomes of requests that satisfy the document, by operation and caller. None depends on time: each request comes from its own address, so that no
 * limit per address is ever reached.
 */
const OUTCOMES: Readonly<Record<string, Outcomes>> = {
  health_live: accepted,
  health_ready: accepted,

  order_list: accepted,
  order_search: accepted,
  order_export: accepted,
  order_feed: accepted,
  order_tree: accepted,
  order_number: accepted,
  order_ping: accepted,
  order_create: forUsers('accepted'),
  order_bulk: { anonymous: ['not_authenticated'], writer: ['accepted'], reader: ['insufficient_scope'], somebody: ['scope_required'] },
  order_retrieve: readsRow,
  order_replace: writesOwnRow,
  order_change: writesOwnRow,
  order_remove: writesOwnRow,

  item_list: accepted,
  item_retrieve: readsRow,
  // `code` is unique.
  item_create: forUsers('accepted', 'conflict'),
  item_change: forUsers('accepted', 'not_found', 'conflict'),
  item_remove: forUsers('accepted', 'not_found'),

  account_me: forUsers('accepted'),
  account_logout: accepted,
  // There are no users. Attempts are also counted by login, and short logins are drawn more than once.
  account_login: forAll('invalid_credentials', 'throttled'),
  // The application sends no mail. Attempts are counted by login here, too.
  account_reset: forAll('mail_not_set_up', 'throttled'),
  account_confirm_reset: needsLink,
  account_confirm_email: needsLink,
  account_accept_invitation: needsLink,
  account_begin_factor: needsSession,
  account_confirm_factor: needsSession,
  account_email: needsSession,
  account_end_other_sessions: needsSession,
  account_end_session: needsSession,
  account_factor: needsSession,
  account_invite: needsSession,
  account_password: needsSession,
  account_presence: needsSession,
  account_remove_factor: needsSession,
  account_renew_recovery_codes: needsSession,
  account_sessions: needsSession,
};

export function isExpected(operationId: string, caller: string | undefined, outcome: Outcome): boolean {
  return OUTCOMES[operationId]?.[(caller ?? 'anonymous') as Caller]?.includes(outcome) === true;
}

export const OPERATIONS: readonly string[] = Object.keys(OUTCOMES);
