import type { User } from '../../../auth/people/principal.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { flag, objectWith, queryable } from '../../../options/value-rule.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import { hasSecondFactor } from '../factors/second-factor.ts';
import { sessionAnswer, type SessionFacts } from './password-login.ts';
import { sessionTokenOf } from '../sessions/session-authenticator.ts';
import { sessionDigest } from '../sessions/session-token.ts';
import { insertNewSession, placeOf } from '../sessions/sessions.ts';
import { deleteExpiredSessions, deleteSession, lockActiveUser } from '../users/store.ts';

/** The request that logged the user in. The context of a handler has everything. */
export interface LoginExchange {
  /** The request that logs in. */
  readonly request: HandlerContext['request'];
  /** Gets the cookie of the session. */
  readonly reply: HandlerContext['reply'];
  /** Shown in the list of sessions. */
  readonly client?: {
    /** The IP address. */
    readonly address: string;
  };
}

export interface OpenSessionOptions {
  /** True when this login has proved a second factor, such as single sign-on with its own. Otherwise staff prove one here. Default: false. */
  readonly secondFactor?: boolean;
}

/**
 * Opens a session for a user that your own login has identified, and sets its cookie. It works with CSRF tokens, the list of sessions and the
 * admin site like one opened by password. A session that the request already has ends. Inactive and unknown users are refused. Without
 * `secondFactor`, a user who has one-time codes proves presence before changes that need a recent login.
 */
export async function openSession(
  db: Db,
  user: Pick<User, 'id'>,
  exchange: LoginExchange,
  options: OpenSessionOptions = {},
): Promise<SessionFacts> {
  const { secondFactor = false } = readOptions('openSession()', options, { secondFactor: flag });
  requireArguments(
    'openSession()',
    { db, user, exchange },
    { db: queryable, user: objectWith('a user: { id }'), exchange: objectWith('{ request, reply } of the handler') },
  );
  const accounts = accountsOf(db);
  const { settings, clock } = accounts;
  const { request, reply, client } = exchange;
  const previousToken = sessionTokenOf(request.headers, settings);
  const session = await db.transaction(async (tx) => {
    const row = isUuid(user.id) ? await lockActiveUser(tx, user.id) : null;
    if (row === null) throw accountErrors.user_not_found();
    // A login never continues a session that it did not start.
    if (previousToken !== null) await deleteSession(tx, sessionDigest(previousToken));
    await deleteExpiredSessions(tx, clock.now());
    // Else a login without the code could replace the codes of the user, and get what they give.
    const present = secondFactor || !(await hasSecondFactor(tx, row.id));
    return insertNewSession(tx, row, settings, clock, { secondFactor, present, place: placeOf(request.headers, client?.address) });
  }, CONFLICT_RETRIES);
  return sessionAnswer({ reply }, accounts, session);
}
