import type { AdminAction, AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import { shortColumns, shortList } from '../../app/admin/short-list.ts';
import type { AdminRow, AdminState } from '../../app/admin/shapes.ts';
import { type AppBackfill, appBackfills, pauseBackfill, resumeBackfill } from '../../app/data/app-backfills.ts';
import type { App } from '../../app/declare/module.ts';
import type { BackfillProgress } from '../../db/backfills/progress.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';

const columns = shortColumns([
  { name: 'name', label: 'Back-fill', kind: 'text' },
  { name: 'state', label: 'State', kind: 'state' },
  { name: 'done', label: 'Done', kind: 'text' },
  { name: 'rate', label: 'Rate', kind: 'text' },
  { name: 'left', label: 'Time left', kind: 'duration' },
  { name: 'required_by', label: 'Required by', kind: 'text', secondary: true },
]);

/** The back-fills of the app: how far they are, and the switch that pauses them. They are run by `kit backfill run`. */
export function backfillsResource(): AdminResource {
  return {
    name: 'backfills',
    label: 'Back-fills',
    singular: 'back-fill',
    group: 'Data',
    icon: 'job',
    auditedAs: 'backfill',
    live: true,
    columns,
    filters: [],
    searches: 'name',
    creation: { refused: 'Back-fills are declared in code: `backfill(name, { … })`.' },
    editable: false,
    removable: false,
    actions: [
      action('pause', {
        label: { one: 'Pause', many: 'Pause selected' },
        confirm: 'Processes that run it stop before the next batch and wait until it is resumed.',
        words: 'paused',
        audited: 'backfill.paused',
        work: pauseBackfill,
      }),
      action('resume', {
        label: { one: 'Resume', many: 'Resume selected' },
        confirm: 'Processes that wait go on. If none runs: npx kit backfill run.',
        words: 'resumed',
        audited: 'backfill.resumed',
        work: resumeBackfill,
      }),
    ],
    list: async (context, query) => shortList((await found(context)).map(rowOf), query),
    titles: async (context, ids) =>
      new Map((await found(context)).filter(({ label }) => ids.includes(label)).map(({ label }) => [label, label])),
    async read(context, id) {
      const backfill = (await found(context)).find(({ label }) => label === id);
      if (backfill === undefined) return null;
      const row = rowOf(backfill);
      const { state, waitsFor } = backfill.progress;
      return {
        ...row,
        state: stateOf(backfill.progress),
        sections: [
          {
            kind: 'facts',
            title: 'Back-fill',
            columns: [...columns, { name: 'table', label: 'Table', kind: 'code' }, { name: 'waits_for', label: 'Waits for', kind: 'text' }],
            values: { ...row.values, table: backfill.backfill.model.name, waits_for: waitsFor },
          },
        ],
        actions: state === 'paused' ? ['resume'] : state === 'finished' || state === 'not started' ? [] : ['pause'],
        removable: false,
      };
    },
  };
}

function found(context: AdminContext): Promise<AppBackfill[]> {
  return appBackfills(context.app as App);
}

function rowOf({ label, progress, requiredBy }: AppBackfill): AdminRow {
  const { state, share, rowsDone, rowsTotal, rowsPerSecond, secondsLeft } = progress;
  return {
    id: label,
    title: label,
    values: {
      name: label,
      state: stateOf(progress),
      done: state === 'not started' ? null : `${Math.floor(share * 100)} %, ${rowsDone} of ${rowsTotal} rows`,
      rate: rowsPerSecond === null ? null : `${Math.round(rowsPerSecond)} rows per second`,
      left: secondsLeft === null ? null : Math.round(secondsLeft * 1000),
      required_by: requiredBy.join(', ') || null,
    },
  };
}

const TONES: Readonly<Record<BackfillProgress['state'], AdminState['tone']>> = {
  'not started': 'neutral',
  running: 'good',
  waiting: 'warning',
  stopped: 'bad',
  paused: 'warning',
  failed: 'bad',
  finished: 'good',
};

function stateOf({ state, waitsFor }: BackfillProgress): AdminState {
  const hint =
    state === 'stopped' || state === 'failed' || state === 'not started'
      ? 'Run: npx kit backfill run.'
      : waitsFor === null
        ? undefined
        : `${waitsFor}.`;
  return { value: state, tone: TONES[state], ...(hint === undefined ? {} : { hint }) };
}

interface ActionSettings {
  readonly label: AdminAction['label'];
  readonly confirm: string;
  readonly words: string;
  readonly audited: string;
  /** False: it is in another state. */
  readonly work: (backfill: AppBackfill, db: Db) => Promise<boolean>;
}

function action(name: string, { label, confirm, words, audited, work }: ActionSettings): AdminAction {
  return {
    name,
    label,
    tone: 'neutral',
    on: 'selection',
    confirm,
    async run(context, ids) {
      const all = await found(context);
      const result = await adminEach(context, ids, async (id) => {
        const backfill = all.find((each) => each.label === id);
        const db = context.databases[backfill?.alias ?? 'default'];
        if (backfill === undefined || db === undefined) return;
        await db.transaction(async (tx) => {
          if (!(await work(backfill, tx))) return;
          const { principal, requestId } = context;
          await context.audit?.record(tx, [
            { actor: principal, action: audited, target_type: 'backfill', target_id: id, request_id: requestId },
          ]);
        }, CONFLICT_RETRIES);
      });
      return adminDone(result, ['back-fill', 'back-fills'], words);
    },
  };
}
