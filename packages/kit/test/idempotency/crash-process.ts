import type { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../../src/db/index.ts';
import { startLedger, steps } from './ledger.ts';

/**
 * Sends one request to an app of its own and is killed on the way: `crash-process.ts <database> <moment> <key>`. The moments `memo-…` are those
 * of a create that calls no code of the application: triggers of the connection and a middleware die in it (SQLite).
 */
const [url = '', moment = '', key = ''] = process.argv.slice(2);
const die = () => void process.kill(process.pid, 'SIGKILL');
const TRIGGERS: Readonly<Record<string, string>> = {
  'memo-begun': 'before insert on memos',
  'memo-written': 'after insert on memos',
  'memo-recorded': 'after insert on kit_idempotency',
};
const database = await openDatabase(url);
const isMemo = moment.startsWith('memo');
const beforeAnswer = { name: 'before-answer', onResponse: () => (moment === 'memo-committed' ? die() : undefined) };
const { call } = await startLedger({ database, migrate: false, middleware: [beforeAnswer] });
if (moment === 'claimed') steps.before = die;
if (moment === 'written') steps.after = die;
if (moment === 'committed') steps.after = (tx) => tx.afterCommit(die);
const trigger = TRIGGERS[moment];
if (trigger !== undefined) {
  const { database: connection } = (database as unknown as { context: { engine: { writer: { database: DatabaseSync } } } }).context.engine
    .writer;
  connection.function('die', () => (die(), null));
  connection.exec(`create temp trigger deadly ${trigger} begin select die(); end`);
}
await (isMemo
  ? call('ann', 'POST', 'memos', { title: key }, { 'idempotency-key': key })
  : call('ann', 'POST', 'payments', { account: key, amount: 5 }, { 'idempotency-key': key }));
// An unknown moment must not pass for a crash.
process.exit(1);
