import type { Where } from '../../db/sql/where/where.ts';
import { crudErrors } from '../declare/errors.ts';
import { limits } from '../declare/limits.ts';
import type { AccessContext, RowAccess } from '../declare/row-access.ts';

interface Asked {
  readonly context: AccessContext;
  readonly answer: PromiseWithResolvers<Where | boolean>;
}

/** What the access of resources says of the callers of many lists, who are asked about at the same time: each access is asked once. */
export class SharedAccess {
  #waiting = new Map<RowAccess, Asked[]>();

  readonly rowsOf = (access: RowAccess, context: AccessContext): Promise<Where | boolean> => {
    const asked = { context, answer: Promise.withResolvers<Where | boolean>() };
    if (this.#waiting.size === 0) setImmediate(() => this.#ask());
    const others = this.#waiting.get(access);
    if (others === undefined) this.#waiting.set(access, [asked]);
    else others.push(asked);
    return asked.answer.promise;
  };

  #ask(): void {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    for (const [access, asked] of waiting)
      answerAll(access, asked).catch((error: unknown) => {
        for (const { answer } of asked) answer.reject(error);
      });
  }
}

async function answerAll(access: RowAccess, asked: readonly Asked[]): Promise<void> {
  if (access.live === undefined) throw new Error(`${access.name} cannot be asked for live lists.`);
  const rows = await access.live.rows(asked.map(({ context }) => context));
  for (const [index, { answer }] of asked.entries()) {
    const found = rows[index];
    if (found === undefined) answer.reject(crudErrors.live_too_many_rows({ extensions: { rows_max: limits.liveRows } }));
    else answer.resolve(found);
  }
}
