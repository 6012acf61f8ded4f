import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { filter } from '../../crud/declare/filter.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Fault } from '../../options/fault.ts';
import { filledText, flag } from '../../options/value-rule.ts';
import { hasScopes, isStaff } from '../../permissions/built-ins.ts';
import { managesTenant } from '../../permissions/manages-tenant.ts';
import { all } from '../../permissions/permission.ts';
import { EntryTime } from './serve/entry-time.ts';
import { auditResource, TENANT } from './serve/resource.ts';
import { sealBeforeReading } from './chain/seal.ts';

const text = jsonSchema<string>({ type: 'string', minLength: 1, maxLength: IDENTITY_LENGTH_MAX });

const reading = {
  scope: 'audit',
  lookup: 'id',
  filters: {
    actor_id: filter(text, (id) => ({ actor_id: id })),
    credential_id: filter(text, (id) => ({ credential_id: id })),
    action: filter(text, (action) => ({ action }), { description: 'For example `api_key.revoked`.' }),
    target_type: filter(text, (type) => ({ target_type: type })),
    target_id: filter(text, (id) => ({ target_id: id })),
    request_id: filter(text, (id) => ({ request_id: id })),
    since: filter(EntryTime, (at) => ({ at: { gte: at } }), { description: 'At this time or later.' }),
    until: filter(EntryTime, (at) => ({ at: { lt: at } }), { description: 'Before this time.' }),
  },
  queryMethod: false,
  ordering: { by: ['seq'], default: ['-seq'] },
  page: { default: 50, max: 100, count: { upTo: 1000 } },
  // Who sees the values of an entry depends on the record that it is about.
  liveWithout: ['before', 'after', 'metadata', 'values_hidden'],
  operations: { retrieve: { field: 'read' }, create: false, update: false, partialUpdate: false, destroy: false },
} as const;
const around = { summary: 'List audit entries, newest first', alsoStream: true } as const;
const scoped = hasScopes({ allowUnscoped: true });

const Entries = CrudController(auditResource, { ...reading, permission: all(isStaff, scoped), audience: STAFF });
const TenantEntries = CrudController(auditResource, { ...reading, permission: all(managesTenant, scoped), audience: TENANT });

/** What the controllers of entries say of themselves. */
interface EntryController {
  readonly name: string;
  readonly using: string;
}

/** Entries are read when they have their place in the chain. */
async function sealed<R>(
  { using, name }: EntryController,
  { databases }: Pick<HandlerContext, 'databases'>,
  read: () => Promise<R>,
): Promise<R> {
  await sealBeforeReading(databaseNamed(databases, using, `${name}.using`));
  return read();
}

/** Staff reads the entries, with the values of records that they may see, by session or by a key with the scope `audit:read`. Nothing can be written. */
export class AuditController extends Entries {
  static override readonly tags: readonly string[] = ['audit'];
  /** The database whose entries are read. */
  static readonly using: string = 'default';
  /** `GET` with `Accept: text/event-stream` follows the list. Each entry is then written to the change log, too: `kit migrate` creates the triggers. */
  static readonly live: boolean = false;
  static readonly [controllerOptions] = { using: filledText, live: flag };

  override list = this.wrap('list', around, (context, next) => sealed(this.constructor as typeof AuditController, context, next));
  override read = this.wrap('read', {}, (context, next) => sealed(this.constructor as typeof AuditController, context, next));

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'audit', this.constructor.name, 'audit()'), ...super.faults(app)];
  }

  override async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof AuditController;
    const faults = requiredDatabase(app, 'audit', name, using, 'audit');
    return faults.length > 0 ? faults : super.databaseFaults(app);
  }
}

/**
 * Members who manage a tenant read what was done in it, by whom, with the values of records that they may see themselves; other members and other tenants'
 * entries never. Mounted as `'/tenant-audit': TenantAuditController`.
 */
export class TenantAuditController extends TenantEntries {
  static override readonly tags: readonly string[] = ['audit'];
  /** The database whose entries are read. */
  static readonly using: string = 'default';
  /** `GET` with `Accept: text/event-stream` follows the list. Each entry is then written to the change log, too: `kit migrate` creates the triggers. */
  static readonly live: boolean = false;
  static readonly [controllerOptions] = { using: filledText, live: flag };

  override list = this.wrap('list', around, (context, next) => sealed(this.constructor as typeof TenantAuditController, context, next));
  override read = this.wrap('read', {}, (context, next) => sealed(this.constructor as typeof TenantAuditController, context, next));

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'audit', this.constructor.name, 'audit()'), ...super.faults(app)];
  }

  override async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof TenantAuditController;
    const faults = requiredDatabase(app, 'audit', name, using, 'audit');
    return faults.length > 0 ? faults : super.databaseFaults(app);
  }
}
