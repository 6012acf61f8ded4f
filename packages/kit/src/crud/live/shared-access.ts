import type { UserDirectory } from '../../auth/people/user-directory.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { crudErrors } from '../declare/errors.ts';
import { limits } from '../declare/limits.ts';
import type { AccessContext, RowAccess } from '../declare/row-access.ts';

interface Asked {
  readonly question: unknown;
  readonly answer: PromiseWithResolvers<unknown>;
}

/** What is asked about at the same time. */
interface Together {
  readonly asked: Asked[];
  readonly answersOf: (questions: readonly never[]) => Promise<readonly unknown[]>;
}

/** What decides about the callers of many lists, who are asked about at the same time: each access is asked once, and so are the users. */
export class SharedAccess {
  #waiting = new Map<object, Together>();

  /** The rows that an access gives to a caller. */
  readonly rowsOf = async (access: RowAccess, context: AccessContext): Promise<Where | boolean> => {
    const { live } = access;
    if (live === undefined) throw new Error(`${access.name} cannot be asked for live lists.`);
    const rows = await this.#together(access, context, (contexts) => live.rows(contexts));
    if (rows === undefined) throw crudErrors.live_too_many_rows({ extensions: { rows_max: limits.liveRows } });
    return rows;
  };

  /** Whether the user with this id is active; null: there is none. */
  isActive({ table }: UserDirectory, db: Db, id: string): Promise<boolean | null> {
    return this.#together(table, id, async (ids: readonly string[]) => {
      const found = await findUsers(db, table, ids);
      return ids.map((each) => found.get(each)?.is_active ?? null);
    });
  }

  /** `about`: one object for questions that have one answer together. */
  #together<Q, A>(about: object, question: Q, answersOf: (questions: readonly Q[]) => Promise<readonly A[]>): Promise<A> {
    const asked = { question, answer: Promise.withResolvers<unknown>() };
    if (this.#waiting.size === 0) setImmediate(() => this.#ask());
    const others = this.#waiting.get(about);
    if (others === undefined) this.#waiting.set(about, { asked: [asked], answersOf });
    else others.asked.push(asked);
    return asked.answer.promise as Promise<A>;
  }

  #ask(): void {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    for (const together of waiting.values())
      answerAll(together).catch((error: unknown) => {
        for (const { answer } of together.asked) answer.reject(error);
      });
  }
}

async function answerAll({ asked, answersOf }: Together): Promise<void> {
  const answers = await answersOf(asked.map(({ question }) => question as never));
  for (const [index, { answer }] of asked.entries()) answer.resolve(answers[index]);
}
