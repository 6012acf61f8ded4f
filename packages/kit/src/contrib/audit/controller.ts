import { databaseNamed } from '../../db/open/named-database.ts';
import type { Database } from '../../db/engine/db.ts';
import { Cursors } from '../../db/sql/keyset/cursor.ts';
import { getOrCreateSecret } from '../../db/rows/secrets.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { checkAll } from '../../errors/fault-collector.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { hasScopes, isStaff } from '../../permissions/built-ins.ts';
import { all, type Permission } from '../../permissions/permission.ts';
import { Entry, EntryId, EntryPage, type EntryRecord, ListQuery } from './schemas.ts';
import { sealBeforeReading } from './seal.ts';
import { listEntries } from './list-entries.ts';
import { shownEntries } from './shown-entries.ts';
import { findEntry } from './store.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { filledText } from '../../options/value-rule.ts';
import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { Fault } from '../../options/fault.ts';

const LIMIT = 50;

/** On the class and on every route: a route taken out of its class keeps it. */
const permission = all(isStaff, hasScopes({ allowUnscoped: true }));

/** Staff reads the entries, with the values of records that they may see, by session or by a key with the scope `audit:read`. Nothing can be written. */
export class AuditController extends Controller {
  static override readonly tags: readonly string[] = ['audit'];
  static override readonly permission: Permission = permission;
  /** The database whose entries are read. */
  static readonly [controllerOptions] = { using: filledText };
  static readonly using: string = 'default';
  #app: App | undefined;

  list = route.get(
    '/',
    { query: ListQuery, response: EntryPage, permission, scope: 'audit:read', summary: 'List audit entries, newest first' },
    async ({ databases, query, db: own, caller }) => {
      const { limit = LIMIT, cursor, since, until, ...equal } = query;
      const times = checkAll({ since: () => momentOf('since', since), until: () => momentOf('until', until) });
      const filter = { ...equal, ...times };
      const db = this.#db(databases);
      await sealBeforeReading(db);
      const cursors = new Cursors([await getOrCreateSecret(own, 'audit cursors')]);
      const page = await listEntries(db, cursors, filter, { limit, cursor });
      return { ...page, items: await shownEntries(this.#installed(), await caller(), page.items) };
    },
  );

  read = route.get(
    '/:id',
    { params: EntryId, response: Entry, permission, scope: 'audit:read', summary: 'Read an audit entry' },
    async ({ databases, params, caller }) => {
      const db = this.#db(databases);
      await sealBeforeReading(db);
      const entry = await findEntry(db, 'id', params.id.toLowerCase());
      if (entry === null) throw coreErrors.not_found();
      const [record] = await shownEntries(this.#installed(), await caller(), [entry]);
      return record as EntryRecord;
    },
  );

  #db(databases: Readonly<Record<string, Database>>): Database {
    const { using, name } = this.constructor as typeof AuditController;
    return databaseNamed(databases, using, `${name}.using`);
  }

  install(app: App): void {
    this.#app = app;
  }

  #installed(): App {
    if (this.#app === undefined) throw new Error(`${this.constructor.name} belongs to no app.`);
    return this.#app;
  }

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'audit', this.constructor.name, 'audit()');
  }

  async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof AuditController;
    return requiredDatabase(app, 'audit', name, using, 'audit');
  }
}

const [EARLIEST, LATEST] = [new Date('0001-01-01T00:00:00.000Z'), new Date('9999-12-31T23:59:59.999Z')];

/** A valid date-time may still be outside what a database can hold: a leap second, the year 10000 after an offset. */
function momentOf(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const moment = new Date(text);
  if (moment >= EARLIEST && moment <= LATEST) return moment;
  const message = 'Use a time in the years 1 to 9999.';
  throw coreErrors.validation_error({ errors: [{ location: ['query', name], code: 'invalid_date', message }] });
}
