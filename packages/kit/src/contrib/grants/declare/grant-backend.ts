import { ruleResult } from '../../../auth/rights/rule-result.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { AccessNarrowing, AccessPage } from '../../../crud/declare/row-access.ts';
import type { PermissionContext } from '../../../permissions/permission.ts';
import type { KnownAsker } from './asker.ts';
import type { Model } from '../../../db/declare/model.ts';

/** The objects that are asked about: what `objectActions` declared. */
export interface DeclaredObjects {
  readonly model: Model;
  readonly actions: ReadonlySet<string>;
  /** The column of the owner, who holds every action. */
  readonly owner: string | undefined;
  readonly tenant: string | undefined;
}

/** A question about the objects of a model. */
export interface GrantQuestion {
  readonly db: Db;
  readonly asker: KnownAsker;
  readonly declaration: DeclaredObjects;
  /** The request as permissions see it; undefined where a program asks. */
  readonly permission: PermissionContext | undefined;
}

/** Who decides about objects. The table of grants is one; rules of the app are another. */
export interface GrantBackend {
  /** Names the backend in problems and in `kit inspect`. */
  readonly name: string;
  /** The rows that the asker may do the action to. */
  condition(question: GrantQuestion, action: string): Promise<Where | boolean> | Where | boolean;
  /** The same for one row that is loaded. */
  decide(question: GrantQuestion, row: Readonly<Record<string, unknown>>, action: string): Promise<boolean> | boolean;
  /** Finds a page of the rows of `view` sooner than a test per row. */
  list?(question: GrantQuestion, page: AccessPage): Promise<AccessNarrowing | undefined>;
}

/** What a backend says, checked: the table's results are its own, a backend of the application may return anything. */
export const askedBackend = {
  async condition(backend: GrantBackend, question: GrantQuestion, action: string): Promise<Where | boolean> {
    return ruleResult('grant condition', placeOf(backend, question), await backend.condition(question, action));
  },
  async decision(backend: GrantBackend, question: GrantQuestion, row: Readonly<Record<string, unknown>>, action: string): Promise<boolean> {
    return ruleResult('grant decision', placeOf(backend, question), await backend.decide(question, row, action));
  },
};

function placeOf({ name }: GrantBackend, { declaration }: GrantQuestion): string {
  return `backend "${name}" of objectActions(${declaration.model.name})`;
}
