import type { App } from '../../app/declare/module.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Fault } from '../../options/fault.ts';
import type { PermissionContext } from '../../permissions/permission.ts';
import type { CrudCaller } from './crud-caller.ts';

/** Who asks for which rows. `request` is one object per request: what was found out for it can be kept under it. */
export interface AccessContext {
  readonly db: Db;
  readonly caller: CrudCaller;
  readonly model: Model;
  readonly request: object;
  /** The request as permissions see it. */
  readonly permission: PermissionContext;
  /** The owner's column of the resource, if it has one. */
  readonly owner: string | undefined;
}

/** A page, or a count, that is about to be read. */
export interface AccessPage {
  /** Rows that are needed at most, from the start of the list or from `after`. */
  readonly limit: number;
  /** Whether more than the access decides which rows are in the list: filters, a parent. */
  readonly isFiltered: boolean;
  /** Set when the list is ordered by the key alone; `after` is the key to go on from, itself included where `inclusive`. Absent: in another order, so that only a complete condition helps. */
  readonly byKey?: { readonly descending: boolean; readonly after?: unknown; readonly inclusive?: boolean };
  /** Rows are counted, not listed: any `limit` of them will do. */
  readonly isCount?: boolean;
  /** Every row is read (an export, statistics, an exact count): only a complete condition helps. */
  readonly isWhole?: boolean;
  /** The page came out short: what was found must be rows that are there. */
  readonly isRetry?: boolean;
}

/** A condition that finds the same rows sooner. */
export interface AccessNarrowing {
  readonly where: Where;
  /** False: there may be more rows than the condition lets through. A page that comes out short is asked for again, and then read without it. */
  readonly isComplete: boolean;
}

/** One row that was written, inside its transaction. */
export interface AccessWrite extends AccessContext {
  readonly operation: 'create' | 'update' | 'destroy' | 'restore';
  readonly before: Readonly<Record<string, unknown>> | null;
  /** Null once the row is gone; a row that was deleted softly is still there. */
  readonly after: Readonly<Record<string, unknown>> | null;
  readonly requestId: string | null;
}

/** How live lists ask the access of a resource. */
export interface LiveRowAccess {
  /** Why changes of what it decides by cannot be followed. Asked at start-up. */
  fault(): string | undefined;
  /**
   * The rows that each caller may see at this moment, as conditions on logged columns of the row; undefined: too many to say it. Asked for the callers of all open lists
   * together, with every change and twice a second: their number must not be that of its statements.
   */
  rows(contexts: readonly AccessContext[]): Promise<readonly (Where | boolean | undefined)[]>;
}

/**
 * Rows given by something else than columns of the row: grants. Joined to the owner by OR. Every read path shows the rows of `view` and nothing
 * else; a write needs the action of its operation, too.
 */
export interface RowAccess {
  /** Names the rule in problems and in `kit inspect`. */
  readonly name: string;
  /** The action that an operation needs; null where there is no row yet. Undefined fails the start: an operation must not slip through. */
  actionOf(operation: string): string | null | undefined;
  /** The action that an operation is usually mapped to: `delete` for `destroy`. For the advice where there is none. */
  usualActionOf?(operation: string): string | undefined;
  /** Which rows the caller may do the action to. */
  condition(context: AccessContext, action: string): Where | boolean | Promise<Where | boolean>;
  /** Whether rows may be given to callers without credentials. */
  readonly admitsAnonymous?: boolean;
  /** Finds a page of the rows of `view` sooner than a test per row. */
  page?(context: AccessContext, page: AccessPage): Promise<AccessNarrowing | undefined>;
  /** Absent: lists of the resource cannot be live. */
  readonly live?: LiveRowAccess;
  /** Called after a row was written and before it is checked to be visible still. Throwing rolls everything back. */
  written?(write: AccessWrite): Promise<void>;
  /** What is wrong with the rule for this resource. Asked at startup. */
  faults?(declared: {
    readonly model: Model;
    readonly owner: string | undefined;
    readonly tenant: string | undefined;
    readonly app: App;
  }): readonly Fault[];
}

/** What every read path needs. */
export const VIEW = 'view';
