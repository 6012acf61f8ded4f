import type { App } from '../../app/declare/module.ts';
import { eraseSubject } from '../../crud/subjects/erase-subject.ts';
import { writeExport } from '../../crud/subjects/write-export.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import {
  cancelErasure,
  isHeld,
  legalHoldOf,
  listErasures,
  listLegalHolds,
  openErasure,
  releaseLegalHold,
  requestErasure,
  setLegalHold,
} from '../../db/subjects/erasure-state.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { stopSignal } from '../terminal/stop-signal.ts';
import { table } from '../terminal/terminal.ts';

const DAY_MS = 86_400_000;
const LISTED = 100;
const PROGRAM = 'kit person';

/** `kit person export|erase|cancel|hold|release|status`. */
export const personCommand: CoreCommand = (command, context) => {
  command.addHelpText('after', HELP);
  command
    .command('export')
    .argument('<user>', 'the id, user name or e-mail address of a user')
    .requiredOption('--to <file>', 'the archive that is written')
    .description('write every row and file of a person to a ZIP archive, with a manifest of counts and checksums')
    .action((user: string, { to }: { to: string }) => exportPerson(context, user, to));
  command
    .command('erase')
    .argument('<user>', 'the id, user name or e-mail address of a user')
    .option('--after <days>', 'when it begins: until then it can be cancelled', '0')
    .description('delete or anonymise the rows of a person; run it again to continue')
    .action((user: string, { after }: { after: string }) => erase(context, user, after));
  command
    .command('cancel')
    .argument('<user>', 'the id, user name or e-mail address of a user')
    .description('take back an erasure that has not begun')
    .action((user: string) => cancel(context, user));
  command
    .command('hold')
    .argument('<user>', 'the id, user name or e-mail address of a user')
    .requiredOption('--reason <text>', 'why, for those who read the list')
    .description('keep the rows of a person as they are: nothing erases them, and no retention removes them')
    .action((user: string, { reason }: { reason: string }) => hold(context, user, reason));
  command
    .command('release')
    .argument('<user>', 'the id, user name or e-mail address of a user')
    .description('end a legal hold')
    .action((user: string) => release(context, user));
  command
    .command('status')
    .description('list erasures with their counts, and legal holds')
    .action(() => status(context));
};

const HELP = `
Which rows are a person's is declared in the models: .person() on the column of the user, .personal() on what says something about them.
An erasure that was stopped or killed goes on where it was when the command runs again; app processes with personalData() continue it, too.`;

/** A user who is gone has no name any more: what follows an erasure is found by the id. */
async function subjectOf(context: CliContext, app: App, given: string): Promise<Subject> {
  const { users, db } = app;
  const found = users === null ? null : ((await users.findById(db, given)) ?? (await users.findByLogin(db, given)));
  if (found !== null) return { kind: 'person', id: found.id };
  const byId: Subject = { kind: 'person', id: given };
  const known = users === null || (await openErasure(db, byId)) !== undefined || (await legalHoldOf(db, byId)) !== undefined;
  return known ? byId : context.fail(`There is no user ${JSON.stringify(given)}.`);
}

async function exportPerson(context: CliContext, user: string, to: string): Promise<void> {
  const app = await context.app();
  const subject = await subjectOf(context, app, user);
  const rows = await writeExport(app, subject, { to, program: PROGRAM, context });
  context.print(context.json ? JSON.stringify({ file: to, rows }) : `${context.paint('green', 'exported')} ${rows} rows to ${to}`);
}

async function erase(context: CliContext, user: string, after: string): Promise<void> {
  if (!/^\d{1,4}$/.test(after)) context.fail(`--after takes days, such as 30, not ${JSON.stringify(after)}.`);
  const app = await context.app();
  const subject = await subjectOf(context, app, user);
  const dueAt = new Date(app.clock.now().getTime() + Number(after) * DAY_MS);
  const { id, due_at: due } = await app.db.transaction((tx) => requestErasure(tx, subject, { dueAt, by: PROGRAM }), CONFLICT_RETRIES);
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  let rows = 0;
  const outcome = await eraseSubject(app, id, { signal: stop.signal, onProgress: (done) => void (rows += done.rows) });
  if (context.json) return context.print(JSON.stringify({ erasure: id, outcome, rows, due_at: due }));
  const texts = {
    finished: `${context.paint('green', 'erased')} ${subject.id}: ${rows} rows in this run. The counts of all: npx kit person status`,
    held: `A legal hold keeps the rows of ${subject.id}. npx kit person release ${subject.id} ends it.`,
    kept: `A legal hold of another person or tenant keeps rows that are also of ${subject.id}: npx kit person status. The others are erased.`,
    waiting: `${subject.id} is erased after ${due.toISOString()}. npx kit person cancel ${subject.id} takes it back.`,
    stopped: 'Stopped. The next npx kit person erase goes on with it.',
  } as const;
  context.print(texts[outcome]);
}

async function cancel(context: CliContext, user: string): Promise<void> {
  const app = await context.app();
  const subject = await subjectOf(context, app, user);
  const done = await app.db.transaction((tx) => cancelErasure(tx, subject), CONFLICT_RETRIES);
  if (!done) context.fail(`No erasure of ${subject.id} is waiting: none was asked for, or it has begun.`);
  context.print(context.json ? JSON.stringify({ cancelled: subject.id }) : `The erasure of ${subject.id} is cancelled.`);
}

async function hold(context: CliContext, user: string, reason: string): Promise<void> {
  const app = await context.app();
  const subject = await subjectOf(context, app, user);
  await app.db.transaction(async (tx) => {
    await setLegalHold(tx, subject, { reason, by: PROGRAM });
    await app.registry.audit?.record(tx, [
      { actor: PROGRAM, action: 'person.held', target_type: 'person', target_id: subject.id, metadata: { reason } },
    ]);
  }, CONFLICT_RETRIES);
  context.print(context.json ? JSON.stringify({ held: subject.id }) : `The rows of ${subject.id} stay as they are.`);
}

async function release(context: CliContext, user: string): Promise<void> {
  const app = await context.app();
  const subject = await subjectOf(context, app, user);
  const done = await app.db.transaction(async (tx) => {
    const released = await releaseLegalHold(tx, subject);
    if (released)
      await app.registry.audit?.record(tx, [{ actor: PROGRAM, action: 'person.released', target_type: 'person', target_id: subject.id }]);
    return released;
  }, CONFLICT_RETRIES);
  if (!done) context.fail(`${subject.id} has no legal hold.`);
  context.print(context.json ? JSON.stringify({ released: subject.id }) : `The legal hold of ${subject.id} has ended.`);
}

async function status(context: CliContext): Promise<void> {
  const { db } = await context.app();
  const [erasures, holds] = [await listErasures(db, LISTED), await listLegalHolds(db)];
  if (context.json)
    return context.print(
      JSON.stringify(
        { erasures: erasures.map((each) => ({ ...each, held: isHeld(each, holds) })), holds },
        (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value),
        2,
      ),
    );
  if (erasures.length + holds.length === 0) return context.print('No erasures and no legal holds.');
  const rows = erasures.map((each) => {
    const { kind, subject_id: id, state, due_at: due, finished_at: finished, counts, last_error: error } = each;
    return [
      kind,
      id,
      isHeld(each, holds) ? `${state}, held` : state,
      (finished ?? due).toISOString(),
      Object.entries(counts)
        .map(([name, done]) => `${name} ${Object.values(done).reduce((sum, each) => sum + each, 0)}`)
        .join(', ') || '-',
      error ?? '-',
    ];
  });
  if (rows.length > 0) for (const line of table(['KIND', 'ID', 'STATE', 'DUE OR FINISHED', 'ROWS', 'ERROR'], rows)) context.print(line);
  const held = holds.map(({ kind, subject_id: id, reason, held_at: at }) => [kind, id, at.toISOString(), reason]);
  if (held.length > 0) for (const line of table(['HOLD', 'ID', 'SINCE', 'REASON'], held)) context.print(line);
}
