import { startLedger, steps } from './ledger.ts';

/** Sends one request to an app of its own and is killed on the way: `crash-process.ts <database> <moment> <key>`. */
const [database = '', moment = '', key = ''] = process.argv.slice(2);
const die = () => void process.kill(process.pid, 'SIGKILL');
const { call } = await startLedger({ database, migrate: false });
if (moment === 'claimed') steps.before = die;
if (moment === 'written') steps.after = die;
if (moment === 'committed') steps.after = (tx) => tx.afterCommit(die);
await call('ann', 'POST', 'payments', { account: key, amount: 5 }, { 'idempotency-key': key });
// An unknown moment must not pass for a crash.
process.exit(1);
