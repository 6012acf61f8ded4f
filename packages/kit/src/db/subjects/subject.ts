import type { Model } from '../declare/model.ts';
import type { Erasing } from '../declare/personal-column.ts';

/** Whose rows: a user of the app, or a tenant. */
export type SubjectKind = 'person' | 'tenant';

export interface Subject {
  readonly kind: SubjectKind;
  /** The id of the user or of the tenant, as text. */
  readonly id: string;
}

/** How the rows of a table are found: a column contains the id itself, or refers to a row of another table of the plan. */
export interface SubjectPath {
  readonly column: string;
  readonly erase: Erasing;
  /** Null: the column contains the id. */
  readonly through: { readonly table: SubjectTable; readonly column: string } | null;
}

/** A table with rows of a person or a tenant. */
export interface SubjectTable {
  readonly model: Model;
  readonly paths: readonly SubjectPath[];
  /** Its rows are the people, or the tenants. */
  readonly isRoot: boolean;
}
