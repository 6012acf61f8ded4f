import type { Command as CommanderCommand } from 'commander';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import { checkAll, FaultCollector } from '../../errors/fault-collector.ts';
import type { Db } from '../../db/engine/db.ts';
import { optionFault, wholeNumberOption } from '../../app/declare/command-options.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { scopeCovers } from '../../permissions/scope.ts';
import { type ApiKey, apiKeyRecord, EVERY_TENANT } from './key/api-key.ts';
import { createApiKey, type IssuedApiKey } from './manage/create.ts';
import { checkFields, fieldFaults } from './rows/field-rules.ts';
import { keyringOf } from './verify/keyring.ts';
import { couldBeUserId } from '../../auth/people/user-table.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { tenantOfKey } from './manage/tenant-of-key.ts';
import { updateApiKey } from './manage/update.ts';
import { KEY_STATES, keyState, type KeyState } from './key/state.ts';
import { findKey, listKeys } from './rows/store.ts';

const ACTOR = 'kit apikey';
const DAY_MS = 86_400_000;
const PAGE = 500;

type Context = CommandContext<App>;

/** `kit apikey create|rotate|revoke|bind|list`; `kit_apikey` is the same without the second word. */
export const apiKeyCommand: Command<App> = {
  name: 'apikey',
  summary: 'create, rotate, revoke, bind and list API keys',
  configure(command, context) {
    addCreate(command, context);
    addRotate(command, context);
    addRevoke(command, context);
    addBind(command, context);
    addList(command, context);
  },
};

const collect = (value: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), value];

function addCreate(command: CommanderCommand, context: Context): void {
  command
    .command('create')
    .description('create a key; the key itself is the last line of the output, and is never shown again')
    .requiredOption('--user <user>', 'the owner: user name, e-mail address or id')
    .requiredOption('--name <name>', 'a label')
    .option('--scope <scope>', 'scope of the key; repeatable', collect)
    .option('--days <days>', 'expire after this many days')
    .option('--rate <rate>', 'rate limit of the key, such as 1000/hour')
    .option('--quota <quota>', 'requests in a calendar period, such as 10000/month')
    .option(
      '--tenant <tenant>',
      'the tenant that the key acts in, by slug or id; "*" for every tenant of the owner (default: the only one)',
    )
    .action(
      async (options: { user: string; name: string; scope?: string[]; days?: string; rate?: string; quota?: string; tenant?: string }) => {
        const { db, clock } = await context.app();
        const { name, scope: scopes = [], rate: rateLimit = null, quota = null } = options;
        const faults = new FaultCollector();
        const user = (await faults.check(() => requireUser(db, options.user))) as User;
        const expiresAt = options.days === undefined ? null : faults.check(() => inDays(options.days as string, clock.now()));
        faults.add(...fieldFaults({ name, scopes, expiresAt, rateLimit, quota }, clock.now()));
        faults.throwIfAny();
        const issued = await createApiKey(db, {
          user,
          name,
          scopes,
          expiresAt: expiresAt ?? null,
          rateLimit,
          quota,
          tenant: options.tenant,
          by: ACTOR,
        });
        warnAboutScopes(context, issued.apiKey.scopes, keyringOf(db).routeScopes());
        const now = clock.now();
        const sentence = `Key ${issued.apiKey.prefix} created for ${user.username}${until(issued.apiKey, now)}. Keep the next line; it is not shown again.`;
        show(context, issued, now, sentence);
      },
    );
}

function addRotate(command: CommanderCommand, context: Context): void {
  command
    .command('rotate')
    .description('give a key a new secret; the new key is the last line of the output')
    .requiredOption('--prefix <prefix>', 'the part of the key between the two underscores')
    .option('--days <days>', 'new expiry, in days from now (default: unchanged)')
    .option('--scope <scope>', 'new scope; repeatable (default: unchanged)', collect)
    .option('--rate <rate>', 'new rate limit, or `none` (default: unchanged)')
    .option('--quota <quota>', 'new quota, or `none` (default: unchanged)')
    .option('--tenant <tenant>', 'the tenant of a key that is not bound to one (default: the only one of the owner)')
    .option('--grace <seconds>', 'keep the old secret valid for this many seconds (default: 0)')
    .action(
      async (options: {
        prefix: string;
        days?: string;
        scope?: string[];
        rate?: string;
        quota?: string;
        tenant?: string;
        grace?: string;
      }) => {
        const { db, clock } = await context.app();
        const key = await requireKey(db, options.prefix, context);
        const { scope: scopes, rate, days, grace, tenant } = options;
        const rateLimit = rate === 'none' ? null : rate;
        const quota = options.quota === 'none' ? null : options.quota;
        const { expiresAt, graceSeconds } = checkAll({
          expiresAt: () => (days === undefined ? undefined : inDays(days, clock.now())),
          graceSeconds: () => (grace === undefined ? 0 : wholeNumberOption('--grace', grace, 0)),
          fields: () => checkFields({ scopes, rateLimit, quota }, clock.now()),
        });
        const issued = await rotateApiKey(db, key, { scopes, expiresAt, rateLimit, quota, graceSeconds, tenant, by: ACTOR });
        warnAboutScopes(context, options.scope ?? [], keyringOf(db).routeScopes());
        const { previous_expires_at } = issued.apiKey;
        const old =
          previous_expires_at === null
            ? 'The old secret has stopped working'
            : `The old secret works until ${previous_expires_at.toISOString()}`;
        const now = clock.now();
        show(
          context,
          issued,
          now,
          `Key ${key.prefix} rotated${until(issued.apiKey, now)}. ${old}. Keep the next line; it is not shown again.`,
        );
      },
    );
}

/** A scope that no route asks for is mostly a slip. An app without scopes of its own hands out keys for others and cannot tell. */
function warnAboutScopes(context: Context, scopes: readonly string[], needed: readonly string[]): void {
  if (needed.length === 0) return;
  for (const scope of scopes.filter((given) => !needed.some((scope) => scopeCovers([given], scope))))
    context.stderr.write(`No route of this app needs the scope ${scope}.${didYouMean(scope, needed)}\n`);
}

function addRevoke(command: CommanderCommand, context: Context): void {
  command
    .command('revoke')
    .description('revoke a key permanently')
    .requiredOption('--prefix <prefix>', 'the part of the key between the two underscores')
    .option('--reason <text>', 'stored with the key and in the audit entry')
    .action(async ({ prefix, reason }: { prefix: string; reason?: string }) => {
      const { db } = await context.app();
      const key = await requireKey(db, prefix, context);
      await revokeApiKey(db, key, { reason, by: ACTOR });
      const revoked = await requireKey(db, prefix, context);
      if (context.json) context.print(JSON.stringify(asJson(revoked, keyringOf(db).clock.now())));
      else
        context.print(
          key.revoked_at === null ? `Key ${prefix} revoked.` : `Key ${prefix} was revoked already, at ${key.revoked_at.toISOString()}.`,
        );
    });
}

function addBind(command: CommanderCommand, context: Context): void {
  command
    .command('bind')
    .description('bind a key from before there were tenants to one: it acts in no other from then on')
    .requiredOption('--prefix <prefix>', 'the part of the key between the two underscores')
    .option(
      '--tenant <tenant>',
      'slug or id of a tenant of the owner; `none` for a key that acts in no tenant, "*" for every tenant (default: the only one)',
    )
    .action(async ({ prefix, tenant }: { prefix: string; tenant?: string }) => {
      const { db, clock } = await context.app();
      const found = await requireKey(db, prefix, context);
      const name = tenant === undefined ? await tenantOfKey(db, found.owner_id, undefined) : tenant;
      const key = await updateApiKey(db, found, { tenant: name === 'none' || name === '' ? null : (name ?? undefined), by: ACTOR });
      if (context.json) return context.print(JSON.stringify(asJson(key, clock.now())));
      context.print(`Key ${prefix} ${bindingOf(key)}.`);
    });
}

function bindingOf({ tenant_id: tenant }: ApiKey): string {
  if (tenant === null) return 'is not bound to a tenant';
  if (tenant === EVERY_TENANT) return 'acts in every tenant of its owner';
  return tenant === '' ? 'acts in no tenant' : `acts in tenant ${tenant} only`;
}

function addList(command: CommanderCommand, context: Context): void {
  command
    .command('list')
    .description('list keys, newest first')
    .option('--user <user>', 'only those of one owner')
    .option('--state <state>', `only those in one state: ${KEY_STATES.join(', ')}`)
    .action(async ({ user: login, state }: { user?: string; state?: string }) => {
      if (state !== undefined && !isState(state))
        context.fail(`There is no state ${JSON.stringify(state)}; use one of ${KEY_STATES.join(', ')}.`);
      const { db } = await context.app();
      const ownerId = login === undefined ? undefined : (await requireUser(db, login)).id;
      const { statements, clock } = keyringOf(db);
      const now = clock.now();
      const keys: ApiKey[] = [];
      for (let page: ApiKey[] = [], first = true; first || page.length === PAGE; first = false) {
        page = await listKeys(db, statements, { ownerId, state, after: keys.at(-1) }, { now, limit: PAGE });
        keys.push(...page);
      }
      if (context.json) return context.print(JSON.stringify(keys.map((key) => asJson(key, now))));
      for (const key of keys) context.print(line(key, now));
      if (keys.length === 0) context.print('There are no such keys.');
    });
}

function line(key: ApiKey, now: Date): string {
  const used = key.last_used_at === null ? 'never used' : `used ${key.last_used_at.toISOString()}`;
  const reason = key.revoked_reason === null ? '' : ` (${key.revoked_reason})`;
  const scopes = key.scopes.length === 0 ? 'no scopes' : key.scopes.join(',');
  const tenant = key.tenant_id === null ? [] : [key.tenant_id === '' ? 'no tenant' : `tenant ${key.tenant_id}`];
  return [key.prefix, `${keyState(key, now)}${reason}`, scopes, key.rate_limit ?? 'no limit', used, key.owner_id, ...tenant, key.name].join(
    '  ',
  );
}

function isState(text: string): text is KeyState {
  return (KEY_STATES as readonly string[]).includes(text);
}

/** The key is alone on the last line of standard output, so that `$(… | tail -n 1)` works. */
function show(context: Context, { apiKey, raw }: IssuedApiKey, now: Date, sentence: string): void {
  if (context.json) return context.print(JSON.stringify({ ...asJson(apiKey, now), key: raw }));
  context.print(sentence);
  context.print(raw);
}

function asJson(key: ApiKey, now: Date): object {
  return { ...apiKeyRecord(key, now), owner_id: key.owner_id, revoked_reason: key.revoked_reason };
}

function until({ expires_at }: ApiKey, now: Date): string {
  if (expires_at === null) return '';
  return expires_at > now
    ? `, valid until ${expires_at.toISOString()}`
    : `, but expired since ${expires_at.toISOString()}: rotate it with --days`;
}

async function requireUser(db: Db, login: string): Promise<User> {
  const { users } = keyringOf(db);
  const user = (await users.findByLogin(db, login)) ?? (couldBeUserId(login, users.table) ? await users.findById(db, login) : null);
  if (user === null) throw optionFault('--user', `There is no user ${JSON.stringify(login)}. Name one by user name, e-mail address or id.`);
  return user;
}

async function requireKey(db: Db, prefix: string, context: Context): Promise<ApiKey> {
  const key = await findKey(db, keyringOf(db).statements, 'prefix', prefix);
  // A whole key given by mistake is not repeated: it would end up in logs.
  return (
    key ??
    context.fail('There is no key with this prefix. The prefix is the part between the two underscores; `kit apikey list` shows them all.')
  );
}

function inDays(text: string, now: Date): Date {
  return new Date(now.getTime() + wholeNumberOption('--days', text, 1, 9_999_999) * DAY_MS);
}
