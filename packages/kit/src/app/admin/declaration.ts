import type { Readable } from 'node:stream';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Cursors } from '../../db/sql/keyset/cursor.ts';
import type { Log } from '../../http/log.ts';
import type { AdminImportResult } from './import-result.ts';
import type { AdminOverview, AdminRecord, AdminSection, AdminTimelineEntry } from './sections.ts';
import type {
  AdminActionShape,
  AdminFileFormat,
  AdminFileTarget,
  AdminPage,
  AdminPageShape,
  AdminPreview,
  AdminRange,
  AdminResourceShape,
  AdminLink,
  AdminResult,
} from './shapes.ts';

/** The caller, and what a declaration may use to answer. */
export interface AdminContext {
  /** The `default` database; the open transaction in its place while a request with an idempotency key runs. */
  readonly db: Db;
  readonly databases: Readonly<Record<string, Db>>;
  readonly clock: Clock;
  /** The staff member; goes into the audit entries of changes. */
  readonly principal: Principal;
  readonly requestId: string;
  readonly log: Log;
  /** For changes that no verb of a module records; null when no module keeps audit entries. */
  readonly audit: AuditSink | null;
  /** The `App`. Its type names declarations, so it is not named here. */
  readonly app: object;
  /** What `createApp({ tenant })` finds for the request; null without a resolver. */
  readonly tenant: () => Promise<string | null>;
  /** The link to a record, by the `target_type` of its audit entries or by its table; null when no resource shows such records. */
  readonly linkTo: (targetType: string, id: string, text?: string) => AdminLink | null;
  /** The request of the site. Its type is of a later ring. */
  readonly exchange?: object;
  /** What people call records of this kind, by id; those that are gone, or have no name, are not in it. */
  readonly titlesOf: (targetType: string, ids: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** The ids of the records of this kind that people call so, by name: those that the caller may see. Two of a name that more have. */
  readonly idsOf: (targetType: string, titles: readonly string[]) => Promise<ReadonlyMap<string, readonly string[]>>;
  /** What the caller may know of records of this kind, for pages that speak of records of others. Null: nothing limits it. */
  readonly sightOf: (targetType: string, ids: readonly string[]) => Promise<AdminSight | null>;
  /** What a field of such a record refers to, as `linkTo` takes it: `owner_id` → `user`. Null: it is a plain value. */
  readonly refersTo: (targetType: string, field: string) => string | null;
  /** During a dry run: what one record does is rolled back alone when it fails. `adminEach` calls it. */
  readonly savepoint?: (<T>(work: () => Promise<T>) => Promise<T>) | undefined;
  /** How forms take files; absent when no module stores them. */
  readonly uploads?: AdminUploads | undefined;
}

/** What the caller may know of some records: which of them, and which of their fields. */
export interface AdminSight {
  readonly ids: ReadonlySet<string>;
  readonly shows: (field: string) => boolean;
}

/** Columns that refer to `table` are file fields in forms. */
export interface AdminUploads {
  /** The table of the uploads, which columns of other tables refer to. */
  readonly table: string;
  /** Every place that takes files, by its path. */
  targets(app: object): ReadonlyMap<string, AdminFileTarget>;
  /** Where the page sends files, besides the application itself; null: nowhere else. */
  origin(): string | null;
  /** A file of this member of staff becomes part of a record, and so its owner's. A 422 at `location` unless it is complete. */
  attach(tx: Db, context: AdminContext, file: AttachedFile): Promise<void>;
}

export interface AttachedFile {
  readonly id: string;
  readonly location: readonly string[];
  /** Of the record that refers to it; null: the file stays with its sender. */
  readonly owner: {
    readonly id: string;
    /** Null: rows of this table belong to no tenant, and the file stays in its own. */
    readonly tenantKey: string | null;
  } | null;
}

export interface AdminListQuery {
  readonly search: string | null;
  /** By the names of the declared filters; unknown names and values were refused before. */
  readonly filters: Readonly<Record<string, string>>;
  readonly sort: { readonly column: string; readonly descending: boolean } | null;
  readonly limit: number;
  readonly cursor: string | null;
  /** Reads and writes the list's cursors. */
  readonly cursors: Cursors;
  /** What a cursor is good for: this list, search, filters and user. */
  readonly bound: string;
}

export interface AdminAction extends Omit<AdminActionShape, 'previews' | 'refused'> {
  /** Each id is one transaction; a failure does not undo the others and is reported in `failures`. */
  run(context: AdminContext, ids: readonly string[], fields: Readonly<Record<string, unknown>>): Promise<AdminResult>;
  /** Asks for a reason, which goes into an audit entry of each record. */
  readonly reason?: 'optional' | 'required';
  /** The operation whose role it needs, where its tone does not say it. */
  readonly needs?: 'create' | 'update' | 'remove';
  /**
   * Checks the given fields where others have faults, so that all are reported at once; throws a 422. `run` checks for itself: it is not called
   * then.
   */
  validate?(context: AdminContext, ids: readonly string[], fields: Readonly<Record<string, unknown>>): Promise<void>;
  /**
   * What happens to the records, as in `5 orders will be paid`: the confirmation then says how many can be done and why others cannot. The
   * server runs the action and rolls it back, so `run` must change nothing but databases, through `context.db` or `context.databases`.
   */
  readonly dryRun?: string;
  /** What `run` would do now. Changes nothing. Beside `dryRun`, its message is the note of the dry run; null: there is nothing to say. */
  preview?(context: AdminContext, ids: readonly string[], fields: Readonly<Record<string, unknown>>): Promise<AdminPreview | null>;
}

/** A file that was sent to a list. */
export interface AdminFile {
  readonly body: Readable;
  readonly format: AdminFileFormat;
  /** Everything is done and undone: what comes back is what would have happened. */
  readonly dryRun: boolean;
  /** Rows that are there already are changed; else they are faults. */
  readonly upsert: boolean;
  /** By the name of a column of the file: the field that it is; an empty text: it is left out. */
  readonly columns?: Readonly<Record<string, string>>;
  /** Throws when this staff member has lost the right in the meantime: to be asked before the commit, with the transaction. */
  readonly requireAdmitted?: (tx: Db) => Promise<void>;
}

/** A kind of record that the site lists. Rules stay in the module's verbs; this only says what is shown and what may be done. */
export interface AdminResource extends Omit<AdminResourceShape, 'actions'> {
  /** The `target_type` of its audit entries: its records then show their history, and entries lead to them. */
  readonly auditedAs?: string;
  /** The table of its records: columns of other tables that refer to it lead here. */
  readonly table?: string;
  /**
   * Whose records these are: the page of a record of this kind shows those that the filter finds by its id. `*` is a record of any kind,
   * found as `order:<id>` by its `target_type` and id. `request` is a request that changed a record, found by its id: the records stand in the
   * timeline of the changed one, by the values `request_id` and, where they are about a record themselves, `record` of their rows.
   */
  readonly related?: readonly {
    /** The kind of record: its `target_type`, `*` or `request`. */
    readonly to: string;
    /** The filter of this list that takes the id. */
    readonly filter: string;
    /** The column of this list that shows the id: the other page leaves it out. Default: the one with the name of the filter. */
    readonly column?: string;
  }[];
  /** `titles` knows only the records that the caller may see: other pages show nothing of the rest, except to superusers. */
  readonly isRestricted?: boolean;
  /** Operations (`create`, or names of actions) that need a login within the last minutes: those that hand out a credential or rights. */
  readonly needsPresence?: readonly string[];
  /** Nothing names its records but their id. */
  readonly isNamedById?: boolean;
  /** Reading a record is recorded in the audit log. */
  readonly auditReads?: boolean;
  /** Fields of its records that hold ids of others, and of which kind: `{ endpoint_id: 'webhook_endpoint' }`. */
  readonly refers?: Readonly<Record<string, string>>;
  /** By the name of a field that takes a file: the path of the controller that takes it. Default: the first one mounted. */
  readonly files?: Readonly<Record<string, string>>;
  /** The CRUD resource that it shows. */
  readonly shows?: object;
  /** The fields of its form are not columns: values of the history cannot be restored by it. */
  readonly hasOwnForm?: true;
  /** A CRUD resource that the app has because of this list. */
  readonly brings?: object;
  /** Actions on a record or a selection. */
  readonly actions: readonly AdminAction[];
  /** The resource as it is in an app, where that says more about it. Null: the app has no such records. */
  installedIn?(app: object): AdminResource | null;
  /** Numbers of its records for the overview, as this member of staff sees them. */
  overview?(context: AdminContext, range: AdminRange): Promise<AdminOverview>;
  /** One page of the list. */
  list(context: AdminContext, query: AdminListQuery): Promise<AdminPage>;
  /** By the name of a filter or of a field of a new record: what to offer while typing, besides what it declares. Read with each page load. */
  suggestions?(context: AdminContext): Promise<Readonly<Record<string, readonly string[]>>>;
  /**
   * By the name of a field of a new record: why this member of staff cannot write it, whatever the record is. The fields of a record's own form say
   * it themselves. Read with each page load.
   */
  closedFields?(context: AdminContext): Promise<Readonly<Record<string, string>>>;
  /** `range`: of the charts on its page. Default: the resource's own choice. */
  read(context: AdminContext, id: string, range?: AdminRange): Promise<AdminRecord | null>;
  /** What people call the records with these ids; those that are gone are not in it. */
  titles?(context: AdminContext, ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The ids of the records that people call so, by title: two of a title that more have. Files may then name records of this list. */
  idsOfTitles?(context: AdminContext, titles: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * Rules about fields that their kinds cannot state; throws a 422. Asked where a form has faults of its kinds: it gets the fields that have none, so
   * that the user sees all faults at once. `create` and `update` check the same. `id`: null for a new record.
   */
  validate?(context: AdminContext, fields: Readonly<Record<string, unknown>>, id: string | null): Promise<void>;
  /** Throws the module's own errors; a fault of a field is a 422 whose location names it. */
  create?(context: AdminContext, fields: Readonly<Record<string, unknown>>): Promise<AdminResult>;
  /** `version`: of the record when its form was made (`AdminRecord.form.version`); null when the form has none. */
  update?(context: AdminContext, id: string, fields: Readonly<Record<string, unknown>>, version: number | null): Promise<AdminResult>;
  /** Deletes a record. Goes with `removable`. */
  remove?(context: AdminContext, id: string): Promise<AdminResult>;
  /**
   * `remove` changes nothing but databases, through `context.db` or `context.databases`, or does the rest after the commit: before a selection is
   * deleted, a dry run says how many can be. Lists of a model need not say it.
   */
  readonly dryRunsRemoval?: boolean;
  /** The whole list as text, piece by piece; the first piece has everything that stands before the first row. Goes with `exports`. */
  exportRows?(context: AdminContext, query: AdminListQuery, format: AdminFileFormat): AsyncGenerator<string, void>;
  /** The change log has the changes of the rows. Goes with `news`. */
  isFollowed?(context: AdminContext): Promise<boolean>;
  /** Says that rows which this staff member sees changed, or the record with this id: at first once, then for each batch of changes. */
  news?(context: AdminContext, id: string | undefined, following: AdminFollowing): AsyncGenerator<void>;
  /** All rows of the file or none; a fault is a 422 whose location is `["body", row, column]`. Goes with `imports`. */
  importRows?(context: AdminContext, file: AdminFile): Promise<AdminImportResult>;
}

/** How long somebody follows a list. */
export interface AdminFollowing {
  readonly signal: AbortSignal;
  /** Throws where the site does not show the list to them any more. */
  readonly requireRole: () => Promise<void>;
}

/** A record, by the `target_type` of its audit entries and its id. */
export interface AdminTarget {
  readonly type: string;
  readonly id: string;
}

/** A module's part of the timeline of a record. */
export interface AdminTimeline {
  readonly entries: readonly AdminTimelineEntry[];
  /** Where all of it is listed. */
  readonly more?: NonNullable<Extract<AdminSection, { kind: 'timeline' }>['more']>;
}

/** Due work of a module: its workers keep up while the oldest is young. */
export interface AdminWaiting {
  /** Of the work: `Jobs`. */
  readonly label: string;
  /** Since when the oldest is due; null: none is. */
  readonly oldest: Date | null;
  /** What to do when it grows old. */
  readonly remedy: string;
}

/** A page that is not a list. */
export interface AdminSectionsPage extends AdminPageShape {
  /** What it shows to this caller. */
  readonly read: (context: AdminContext) => Promise<readonly AdminSection[]>;
}

/** What the admin site shows for a module. */
export interface AdminDeclaration {
  /** Lists and records of the module. */
  readonly resources?: readonly AdminResource[];
  /** Pages that are not lists. */
  readonly pages?: readonly AdminSectionsPage[];
  /** What the module has to say about a record of another: parts of its page. */
  sections?(context: AdminContext, target: AdminTarget): Promise<readonly AdminSection[]>;
  /** What the module knows that happened to a record of any kind, newest first: the site puts the entries of all modules into one timeline. */
  timeline?(
    context: AdminContext,
    target: AdminTarget,
    /** The requests that caused the record, where its row stores them. */
    requests: readonly string[],
  ): Promise<AdminTimeline>;
  /** Figures of the module for the start page of the site. */
  overview?(context: AdminContext, range: AdminRange): Promise<AdminOverview>;
  /** Work that is due and that no worker has taken, for the bar of the site; asked every few seconds. */
  waiting?(context: AdminContext): Promise<AdminWaiting>;
  /** How forms take files. Set by the uploads module. */
  readonly uploads?: AdminUploads;
}
