import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { IDENTITY_LENGTH_MAX } from '../values/identity-length.ts';

export const SUBJECT_KINDS = ['person', 'tenant'] as const;
export const REASON_LENGTH_MAX = 300;

/**
 * waiting    its time has not come
 * running    rows are being erased; a process that was killed is continued by the next one
 * finished   no row is left
 * cancelled  somebody took it back before it began
 */
export const ERASURE_STATES = ['waiting', 'running', 'finished', 'cancelled'] as const;

/** People and tenants that are erased, and how far. A finished one is the proof: its counts, and no value of what was erased. */
export const erasures = model(
  'kit_erasures',
  {
    id: t.uuidv7().pk(),
    kind: t.enum(SUBJECT_KINDS),
    subject_id: t.text(IDENTITY_LENGTH_MAX),
    state: t.enum(ERASURE_STATES),
    requested_at: t.timestamp(),
    /** A user's id, or the name of a program. */
    requested_by: t.text(IDENTITY_LENGTH_MAX).nullable(),
    due_at: t.timestamp().describe('Until then it can be cancelled.'),
    started_at: t.timestamp().nullable(),
    finished_at: t.timestamp().nullable(),
    /** `orders.owner_id` and the key of the last row that was done, as JSON. */
    step: t.text(200).nullable(),
    position: t.text().nullable(),
    /** Rows since the pass over all tables began: a pass without any is the last one. */
    pass_rows: t.bigint(),
    /** By table: rows that were deleted, anonymised and unlinked. */
    counts: t.json<ErasureCounts>(),
    /** Attempts that failed since one that did something, when the next one is made, and why the last one failed. Without a failure: what a legal hold keeps. */
    failures: t.int().dbDefault(0),
    retry_at: t.timestamp().nullable(),
    last_error: t.text(500).nullable(),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['kind', 'subject_id'], unique: true, where: "state <> 'finished' and state <> 'cancelled'", name: 'kit_erasures_open' },
      { columns: ['due_at'], where: "state <> 'finished' and state <> 'cancelled'", name: 'kit_erasures_due' },
      { columns: ['kind', 'subject_id', 'state'], name: 'kit_erasures_of_subject' },
    ],
  },
);

export type ErasureCounts = Readonly<Record<string, Readonly<Partial<Record<'delete' | 'anonymise' | 'unlink' | 'keep', number>>>>>;

/** People and tenants whose rows must stay as they are: nothing erases them and no retention removes them. */
export const legalHolds = model(
  'kit_legal_holds',
  {
    kind: t.enum(SUBJECT_KINDS),
    subject_id: t.text(IDENTITY_LENGTH_MAX),
    reason: t.text(REASON_LENGTH_MAX),
    held_at: t.timestamp(),
    held_by: t.text(IDENTITY_LENGTH_MAX).nullable(),
  },
  { guarded: true, primaryKey: ['kind', 'subject_id'] },
);

/** What retention did to a table. */
export const retentionRuns = model(
  'kit_retention',
  {
    table_name: t.text(63).pk(),
    /** When the table is looked at again. */
    next_at: t.timestamp(),
    last_run_at: t.timestamp().nullable(),
    /** Rows of the last run that found any, and of all runs. */
    last_rows: t.bigint(),
    total_rows: t.bigint(),
    /** Why the last run failed. */
    last_error: t.text(500).nullable(),
  },
  { guarded: true },
);
