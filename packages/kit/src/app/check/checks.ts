import { DATA_CHECKS, DATA_WARNINGS } from './personal-checks.ts';
import { SERVER_CHECKS } from './server-warnings.ts';
import { TENANT_CHECKS } from './tenant-checks.ts';

/** What each check id means. `kit explain` and docs/reference/checks.md are made from this table. */
export interface CheckDescription {
  readonly title: string;
  readonly explanation: string;
  readonly remedy: string;
}

export const checkDescriptions: Readonly<Record<string, CheckDescription>> = {
  E001: {
    title: 'Unknown option',
    explanation:
      'A route, controller, version mount, module, middleware, factory, setting or the app was given an unknown option. It would be ignored silently.',
    remedy: 'Correct the spelling; the message names the nearest known option.',
  },
  E002: {
    title: 'Option or route in the wrong place',
    explanation:
      'An option would be ignored where it is written: a controller option as a bare class attribute (it belongs on the class, as `static`), an option of routes on the controller, or an option of `CrudController()` or `resource()` as an attribute of the class. Or a mounted controller has no route fields.',
    remedy:
      'Write `static readonly permission = …`; write options of routes in each route, and those of a resource in the call: `CrudController(resource, { output: … })`. Declare routes as instance fields: `list = route.get(…)`.',
  },
  E003: {
    title: 'Collision',
    explanation:
      'Two operations have the same method and path (parameter names do not distinguish paths), or have the same operation id. Or two different schemas of one controller have the same name.',
    remedy: 'Change a path or prefix; rename a class or field, or set `operationId`; give one of the schemas another name.',
  },
  E004: {
    title: 'Path and parameters disagree',
    explanation: 'A parameter of the path is missing from the `params` schema or the other way round, or the path is malformed.',
    remedy: 'Declare exactly the parameters the path has.',
  },
  E005: {
    title: 'Missing or contradictory permission',
    explanation:
      'A route without permission, a scope its permission never checks, a malformed scope, an authenticator or named rule that does not exist.',
    remedy: 'Set a permission; add `hasScopes()` to routes that have a scope; correct the name.',
  },
  E006: {
    title: 'Modules do not fit together',
    explanation:
      'A module requires one that is not installed, two modules have one name, modules depend on each other in a cycle, two modules provide users or the same table, command, job or error code, a plugin uses another copy of this package, or the tables of a module are in a database that the app does not have.',
    remedy: 'Install what is required; remove the duplicate; give the app the database, or correct its name.',
  },
  E007: {
    title: 'Unusable statistics',
    explanation: '`stats` uses a column that does not exist, that callers cannot see, or that cannot be grouped or summed.',
    remedy: 'Correct the name. `sum` and `avg` need a numeric column.',
  },
  E008: {
    title: 'Unusable controller or schema',
    explanation:
      'What was mounted is not a controller or cannot be created; a schema is not a Standard Schema, cannot be written as JSON Schema, or describes a body the method or status cannot have.',
    remedy: 'Use types JSON can carry; move the body to `route.query` or `route.post`.',
  },
  E009: {
    title: 'Unusable throttle',
    explanation: 'A throttle has no rate in THROTTLE_RATES, or two throttles of one route share a name and so their budgets.',
    remedy: 'Add the rate; give one of the throttles another name.',
  },
  E010: {
    title: 'Raised error without an error map',
    explanation: '`raises` names an error class that no error map covers: callers would see a 500 instead of what is documented.',
    remedy: 'Map the class on the operation, its controller, version mount or app.',
  },
  E011: {
    title: 'Unusable setting',
    explanation:
      'An environment variable or option has a value the app cannot work with: the message names it. Values of secrets are never printed.',
    remedy: 'Correct the value as the message describes.',
  },
  E012: {
    title: 'Unknown name in a resource',
    explanation:
      'An option of `resource()` or `CrudController()` names a column, relation, operation, operator, state or full text that the model does not have, or that does not fit the column.',
    remedy: 'Correct the name; the message suggests the nearest known name.',
  },
  E013: {
    title: 'Rows without a rule',
    explanation:
      'The resource has no row rule (`tenant`, `owner`, `rows`, `access`), or combines one with `unscoped: true`. Also: the column of the rule is missing, nullable or writable by clients; a version column, tenant resolver or audience is missing; the app does not have the database, or `readFrom` names one that is no replica or on a route that cannot use one; or the permission admits anonymous callers to the rows of an owner.',
    remedy: 'Set `tenant`, `owner`, `rows`, `access` or `unscoped: true`; declare the column as the message describes.',
  },
  E014: {
    title: 'No single key',
    explanation:
      'A model with a key of several columns has no `lookup`, or no column that is unique and not null; or the `lookup` column is not unique, or may be null: such a row would have no address. A column that imports find rows by must be unique, too.',
    remedy: "Name a unique column: `lookup: 'slug'`.",
  },
  E015: {
    title: 'Nothing sets a required column',
    explanation: 'A row cannot be created: neither client, default, policy nor hook sets a required column.',
    remedy: 'Put the column into `input`, give it a default, or set it in `hooks.create`.',
  },
  E016: {
    title: 'Query option uses a hidden column',
    explanation: 'A filter, ordering, search, statistic, key or lookup uses a column that some callers cannot see.',
    remedy: 'Leave the column out, or show it to every caller.',
  },
  E017: {
    title: 'A relation without a policy',
    explanation:
      'A relation or reference leads to a model without a resource, or to another database, a model has two resources for one audience, or the column of a relation does not refer to its model.',
    remedy:
      'Mount a controller of the model, or give its resource to `createApp({ resources })`; declare the column with `t.ref(() => model)`.',
  },
  E018: {
    title: 'Names collide',
    explanation:
      'A transition, relation, filter or field takes a name that generic operations use, a transition one under which other changes are recorded (`created`), or a transition has a state that does not exist, a name that cannot be part of an address, or can never run.',
    remedy: 'Give it another name; name the states it starts from.',
  },
  E019: {
    title: 'Idempotency cannot be kept',
    explanation:
      '`idempotent` is set on a route that is not atomic, that streams its request or response body, or that admits anonymous callers without `idempotent.anonymous`; or the resource is in another database than the idempotency records. Also: a route is atomic and streams its body, so that its transaction would wait for the client.',
    remedy: 'Add `atomic: true` and write with `tx`; require authentication, or set `idempotent: { anonymous }`.',
  },
  E020: {
    title: 'Soft deletion cannot work',
    explanation:
      'Soft deletion is enabled, but the model has no soft-delete columns, the cascade reaches a model without them, a unique index includes deleted rows, or rows are restored by a column that is not unique among deleted rows.',
    remedy: 'Add `...softDelete()` to the models; declare unique values with `softDeleteUnique()`.',
  },
  E021: {
    title: 'Search structures are missing',
    explanation:
      'A list searches by full text, and the database lacks the generated column, index, table or trigger that keeps its words, or has another. Searches would fail, or miss rows.',
    remedy: 'Run `kit migrate`; if the structures were changed manually, write a migration with `dropFullText` and `createFullText`.',
  },
  E022: {
    title: 'Visibility cannot be decided',
    explanation:
      'An object permission guards a list but has no `rows` condition, or too many permissions control the visibility of one resource.',
    remedy: 'Use the rows of the resource; name permissions once and use them for several fields.',
  },
  E023: {
    title: 'Model without a migration',
    explanation: 'A model declares a table, column, index or check that no migration creates. The first statement that uses it would fail.',
    remedy: 'Write the migration with `kit migrate make <name>`, review it, add it to its module, and run `kit migrate`.',
  },
  E024: {
    title: 'Grants cannot be decided',
    explanation:
      'An operation is not mapped to a grant action, or `objectActions()` refers to a set, action, column or parent that does not exist.',
    remedy: 'Correct `objectActions(…)`, or map the operation: `grants(orders, { operations: { approve: "change" } })`.',
  },
  E025: {
    title: 'The app cannot be examined',
    explanation:
      'Found by `kit doctor`: the config file is missing or cannot be loaded, the app does not start, or a database cannot be reached.',
    remedy: 'Do what the message says, then run `kit doctor` again: other checks run only after it.',
  },
  E026: {
    title: 'Migrations are pending',
    explanation: 'Found by `kit doctor` and by every command that reads tables: a database does not have all migrations of this version.',
    remedy: 'Run `kit migrate`, once per release, before the new version serves.',
  },
  E027: {
    title: 'Reference to an unknown table',
    explanation:
      "A model refers to a table by name, `t.ref('custmers')`, and neither a model, a migration nor the database has a table of this name. SQLite creates such a reference; the first insert fails.",
    remedy: 'Correct the name, or refer to the model: `t.ref(() => customers)`.',
  },
  E028: {
    title: 'Operation cannot be a tool',
    explanation:
      'An operation with `tool`, or one that `mcp({ include })` selects, streams events, has a body or a response that is not JSON, or has a body that is not an object. Or two of its parameters, or two tools, have the same name.',
    remedy: 'Name arguments and tools with `tool: { name, arguments }`, or set `tool: false`.',
  },
  E031: {
    title: 'Unsafe or unsupported better-auth option',
    explanation:
      'The instance given to `betterAuth()` has an option under which logins are not safe, or under which sessions and organizations cannot be found: no `baseURL`, a default secret, sessions outside of the database, `bearer` without `requireSignature`, sessions that survive a password reset, disabled checks of origin or CSRF, renamed tables or columns, ids that are not text, or a version with other tables.',
    remedy: 'Change the option as the message describes.',
  },
  E032: {
    title: 'Tables of better-auth do not match its options',
    explanation:
      'A plugin or an additional field of the better-auth instance needs tables or columns that the migrations of `betterAuth()` do not create.',
    remedy: 'Add a migration with the statements of the message to a module of the app.',
  },
  E033: {
    title: 'better-auth instance not connected',
    explanation:
      'The instance has no `kitPlugin()`, or its database is not `joinedKysely(db)` on the default database of the app. Its changes would not be part of transactions, and modules would not be notified of them.',
    remedy: 'Add the plugin, and `database: { db: joinedKysely(db), type: db.dialect, transaction: true }`.',
  },
  E034: {
    title: 'No usable login',
    explanation:
      'admin() is installed and nothing says how staff log in, or the login provider names an authenticator that does not exist or does not verify CSRF, or has neither `loginUrl` nor `form`.',
    remedy: 'Add accounts(), or describe your own login with `createApp({ login })`.',
  },
  E035: {
    title: 'List that cannot be live',
    explanation:
      'A controller has `live: true`, and its list depends on something that no change of its rows reports: rows of other tables, a time that is rounded, grants on a parent or a backend of grants, a database without a change log, or a foreign key by which the database changes rows by itself. Or triggers should log the changes, and the database does not have them. Changes would be missed.',
    remedy:
      "Decide by columns of the row, leave the field out of `output`, declare `changes: 'trigger'` and run `npx kit migrate`, or remove `live`. The message says which.",
  },
  ...DATA_CHECKS,
  W003: {
    title: 'Public write without a throttle',
    explanation: 'Anyone on the network may call a writing operation as often as they like.',
    remedy: 'Add a client throttle or a permission.',
  },
  W005: {
    title: 'A response requires a field that may be left out',
    explanation:
      'The response schema of a route of a CRUD controller requires a field that some callers may not see: what `present` gives them lacks it, and the response does not match its schema.',
    remedy: "Make the field optional in the schema, or show it as null: `visibleTo(permission, { hidden: 'null' })`.",
  },
  W006: {
    title: 'A computed field requires an unknown relation',
    explanation: '`requires` contains a path that is not a column of a to-one relation. The field receives null for it.',
    remedy: 'Correct the path.',
  },
  W007: {
    title: 'A to-many relation without a limit, or without an index',
    explanation:
      'An expansion shows 20 rows per parent because the relation has no limit; or no index begins with the column it reads, so that each page reads the whole table of the children.',
    remedy: 'Set the limit: `many(…, { limit: 20 })`; add an index that begins with the column.',
  },
  W008: {
    title: 'A list reads a whole table',
    explanation:
      'No index supports a column that lists filter or sort by, that has the owner, or that joins a to-many relation. Startup checks the declaration only; `kit doctor` also checks table sizes (PostgreSQL: small tables are skipped).',
    remedy:
      'Add an index that begins with the column, or with the tenant and owner columns before it. A table that stays small needs none.',
  },
  W009: {
    title: 'A search reads every row',
    explanation:
      'A `contains` search scans every row, because no index narrows the rows to those of the caller. Reported by `kit doctor` for tables of 10,000 rows or more.',
    remedy: 'Begin an index with the tenant or owner column, or use another search backend.',
  },
  W010: {
    title: 'Unscoped in an app with tenants',
    explanation: 'Every caller of every tenant sees every row of the resource.',
    remedy: 'Set `tenant`, unless every tenant may see every row.',
  },
  W011: {
    title: 'A unique value reveals rows of others',
    explanation: 'A unique index does not begin with the tenant or owner column: a 409 reveals that another owner already has the value.',
    remedy: 'Make the tenant or owner column the first column of the index, unless the value must be unique across all of them.',
  },
  W012: {
    title: 'A list without a limit',
    explanation:
      'A hand-written route returns a list of rows without a limit: the response grows with the table. Reported by `kit doctor`.',
    remedy: 'Accept a `limit` parameter, set `maxItems` in the response schema, or offer the rows with `CrudController()`.',
  },
  W013: {
    title: 'Guarded rows or columns are writable',
    explanation:
      'A resource opens a guarded column, such as `is_staff` of users, or a controller deletes rows that a module manages. The checks of the module are bypassed.',
    remedy: 'Use the functions of the module in your own routes. Otherwise make sure that the permission is as narrow as it should be.',
  },
  W014: {
    title: 'All clients of a proxy are counted as one',
    explanation:
      'Throttles count by client address, and no proxy is trusted. Behind a proxy all clients have its address. Found by `kit doctor`, and at startup with `NODE_ENV=production`.',
    remedy: 'Set `TRUSTED_PROXIES` to the address of the proxy, or to `none` where there is no proxy.',
  },
  W015: {
    title: 'Each process counts throttles for itself',
    explanation:
      'Found by `kit doctor`: on PostgreSQL an app usually has several processes, and with N of them a client gets N times its rate.',
    remedy: 'Give `createApp` a `throttleStorage` that the processes share: `sqlStorage()` or `redisStorage()`.',
  },
  W016: {
    title: 'An untested release of Node',
    explanation: 'Found by `kit doctor`: this version of the toolkit was not tested on this major release of Node.',
    remedy: 'Use one of the releases that the message lists.',
  },
  W017: {
    title: 'Tables differ from their migrations',
    explanation:
      'Found by `kit doctor`: somebody changed a table after its migrations were applied, or a newer version did. A missing table or column is a fault.',
    remedy: 'Change the table back, write a migration, or deploy the newer version again.',
  },
  W018: {
    title: 'A unique value of a deleted row cannot be used again',
    explanation:
      'Found by `kit doctor`: a model with soft deletion has a unique index that also counts deleted rows. For a model with a resource it is E020.',
    remedy: "Make the index partial (`where: 'deleted_at is null'`), or declare the column with `softDeleteUnique()`.",
  },
  W019: {
    title: 'Rows have an owner, and every caller sees them',
    explanation:
      'Found by `kit doctor`: a resource is `unscoped`, and its model has a column that looks like an owner, such as `owner_id`.',
    remedy: 'Set `owner` of the resource; silence the check with a reason where every caller should see every row.',
  },
  W020: {
    title: 'Misspelt event type',
    explanation:
      '`availableEvents` of a webhook controller has an event type that no resource publishes and `webhooks({ eventTypes })` does not declare, and that looks like one of them. Endpoints can subscribe to it and never receive an event.',
    remedy:
      'Correct the event type. `orderResource.eventTypes.created` and the `name` of a declared type cannot be misspelt: the compiler checks them.',
  },
  W021: {
    title: 'A tool without a description',
    explanation:
      'Neither the summary nor the description of an operation tells an AI agent what its tool does, so agents use it wrongly or not at all.',
    remedy: "Add a `summary`, or `tool: { description: '…' }`: what the tool does, and when to use it.",
  },
  W022: {
    title: 'Events that no endpoint can receive',
    explanation:
      'A resource publishes its events to endpoints of a tenant, and only controllers of personal endpoints are mounted, or the other way round, or none is. Events with a tenant never reach personal endpoints.',
    remedy:
      "Mount `TenantWebhookController` for the endpoints of tenants, `WebhookEndpointController` for personal ones, and one with `static override readonly tenantField = 'tenant_key'` for those of a user in a tenant. A resource with `tenant` and `owner` publishes to the latter; `events: 'tenant'` publishes to all endpoints of the tenant. Silence the check if only the admin site or programs create endpoints.",
  },
  W024: {
    title: 'An untested version of better-auth',
    explanation: 'The installed version of better-auth is newer than those that this version of the toolkit was tested with.',
    remedy: 'Install a tested version, or run your own login tests and silence the check with a reason.',
  },
  ...DATA_WARNINGS,
  W027: {
    title: 'Everyone may write',
    explanation: 'A writing operation admits callers without a credential. Throttles limit how often, not who. `kit doctor` reports it.',
    remedy: "Set a permission. Where the operation is open on purpose, say why: `metadata: { openWrite: 'a contact form' }`.",
  },
  W028: {
    title: 'A secret is not set in production',
    explanation:
      'With `NODE_ENV=production`, API keys are hashed without a pepper, or signing secrets of webhooks are stored in plain text: a copy of the database is enough to attack them.',
    remedy:
      'Set `API_KEY_PEPPER` and `WEBHOOK_SECRET_KEYS`, from a secret store. Where you do without on purpose, silence the check with the reason.',
  },
  W029: {
    title: 'A pooler loses prepared statements',
    explanation:
      'A pooler between the application and PostgreSQL gives the connection to another server process after each transaction, and does not keep prepared statements. Statements fail now and then with `prepared_statement_lost`.',
    remedy: 'Set `DATABASE_PREPARE=off`, or let the pooler keep them (PgBouncer 1.21 or later: `max_prepared_statements`).',
  },
  W030: {
    title: 'A request repeats a statement',
    explanation:
      'In the last run of the tests, one request ran the same statement five times or more, such as one for each row of a list (N+1). With more rows it gets slower. `testApp()` notes it below `node_modules/.cache` beside `kit.config.ts`, and `kit doctor` reports it.',
    remedy:
      'Load the rows together: `expand` or `requires` of a resource, or one statement for all rows. Then run the tests again. `testApp({ strictQueries: true })` fails such a test.',
  },
  W031: {
    title: 'Workers cannot ask for memberships',
    explanation:
      'The app has tenants, and webhooks or jobs, and does not declare who is a member in a form that works without a request. Webhook endpoints of former members receive events of the tenant until they are deleted, and jobs with `actsForOwner` do not run in a tenant. API keys are not affected: the tenant of each request is resolved again.',
    remedy:
      "Declare `membership` or `memberships` in `createApp()`. If only access tokens contain memberships, set `memberships: 'not known'` and delete endpoints when members leave.",
  },
  W032: {
    title: 'A request can read many rows',
    explanation:
      'A route allows a request that reads more than 100,000 rows of the tables as they are now, because no index serves its filters and its order. Such a request runs up to its deadline. Reported by `kit doctor --database`, which counts the rows of the caller who has the most, with a plan of the database.',
    remedy: 'Add the index that the finding names, or remove the filter, the search or the order from the controller.',
  },
  W033: {
    title: 'Changes are not recorded',
    explanation: 'A resource sets `audit: true`, and no module of the app records audit entries: its changes leave no trace.',
    remedy:
      'Add `audit()` of `kit/contrib/audit` to the modules of `createApp()`. Without `audit: true` a resource is recorded where the module is there.',
  },
  W044: {
    title: 'A proxy does not learn in time that a process stops',
    explanation:
      'Found by `kit doctor`: `TRUSTED_PROXIES` names a proxy, and `SHUTDOWN_DELAY_MS` is 0. A stopping process returns 503 at `/health/ready` and closes its port immediately. A proxy or a Kubernetes Service that notices later sends it requests until then.',
    remedy:
      'Set `SHUTDOWN_DELAY_MS` to two probe periods of the proxy, and give the process more time to stop than the sum of `SHUTDOWN_DELAY_MS` and `SHUTDOWN_TIMEOUT_MS`.',
  },
  ...SERVER_CHECKS,
  ...TENANT_CHECKS,
  W043: {
    title: 'Records of a list of the admin site have no name',
    explanation:
      'No column of the model can name a record, so the list, links to it, confirmations and messages show the id. `kit check` reports it for the lists of your own modules.',
    remedy:
      "Name a text column of the model: `modelResource(orders, { title: 'reference' })`. Where no column says it, make one: `cells: { title: (row) => … }`, `title: 'title'`.",
  },
};
