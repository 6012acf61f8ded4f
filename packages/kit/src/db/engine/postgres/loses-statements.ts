import { isConnectionFailure } from './connection-failure.ts';
import type { Session } from './session.ts';

const STATEMENT = { name: 'kit_doctor', text: 'select 1 as one' };
/** Poolers choose the server process of a transaction by rules of their own; PgBouncer takes the one that was free last. */
const ROUNDS = 3;
/** A pooler with one connection to the server lets the first wait for the second. */
const ANSWER_MS_MAX = 5_000;

/**
 * True where a pooler runs the transactions of one connection on several server processes and does not tell them about its prepared statements.
 * One connection prepares a statement; another takes the server process it ran on, and the first runs its statement again.
 */
export async function losesStatements(open: () => Promise<Session>): Promise<boolean> {
  const sessions: Session[] = [];
  try {
    sessions.push(await open());
    sessions.push(await open());
    const [first, second] = sessions as [Session, Session];
    const ask = (session: Session, text: string | typeof STATEMENT): Promise<unknown> =>
      session.within(ANSWER_MS_MAX, session.client.query(text as string));
    // What a new connection sends by itself has been answered.
    for (const each of sessions) await ask(each, 'select 2 as two');
    await ask(first, STATEMENT);
    for (let round = 0; round < ROUNDS; round += 1) {
      await ask(second, 'begin');
      await ask(second, 'select 2 as two');
      await ask(first, STATEMENT);
      await ask(second, 'rollback');
    }
    return false;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === '26000' || code === '42P05') return true;
    if (isConnectionFailure(error)) return false; // too few connections to try it with
    throw error;
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
}
