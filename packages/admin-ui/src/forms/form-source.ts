import type { AdminField, AdminTimelineEntry } from '../api/shapes.ts';

/** What a form is made from. */
export interface FormSource {
  readonly fields: readonly AdminField[];
  /** Absent: a new record. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** Of the record that the values are of. */
  readonly tag?: string | undefined;
}

/** The record as somebody else left it. */
export interface Conflict {
  readonly form: FormSource;
  /** What the audit log says about the record, newest first. */
  readonly changes: readonly AdminTimelineEntry[];
}
