import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { App } from '../../app/declare/module.ts';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { findSubject, findUser } from './caller/find-subject.ts';
import { grant, revoke } from './grant/grant.ts';
import { declarationOf, grantsState, type ObjectRef } from './declare/grants-state.ts';
import { explainAccess } from './grant/holdings.ts';
import { objectChain } from './declare/object-chain.ts';
import { pruneGrants } from './rows/prune.ts';
import { grantFacts } from './rows/record-grant.ts';
import { type GrantRow, listGrants } from './rows/store.ts';
import { namesOf } from './caller/subject-names.ts';
import { shownActions } from './declare/stored-actions.ts';

const ACTOR = 'kit grants';
const PAGE = 500;

type Context = CommandContext<App>;

/** `kit grants list|grant|revoke|explain|prune`. */
export const grantsCommand: Command<App> = {
  name: 'grants',
  summary: 'list, give, take and explain what users and groups may do to objects',
  configure(command, context) {
    command
      .command('list')
      .description('list grants, oldest first')
      .option('--subject <subject>', 'of one subject: user:<name or id>, group:<name or id>, tenant, authenticated, public')
      .option('--object <object>', 'on one object: orders/<id>')
      .action(async (options: { subject?: string; object?: string }) => {
        const { db } = await context.app();
        const object = options.object === undefined ? {} : objectOf(db, options.object, context);
        const filter = { ...(options.subject === undefined ? {} : { subject: await subjectOf(db, options.subject, context) }), ...object };
        const rows: GrantRow[] = [];
        for (
          let page = await listGrants(db, filter, null, PAGE);
          page.length > 0;
          page = await listGrants(db, filter, page.at(-1)?.id ?? null, PAGE)
        )
          rows.push(...page);
        if (context.json)
          return context.print(
            JSON.stringify(
              rows.map((row) => Object.assign({ id: row.id }, grantFacts(row))),
              null,
              2,
            ),
          );
        const names = await namesOf(
          db,
          rows.map(({ subject }) => subject),
        );
        for (const row of rows) context.print(lineOf(row, names.get(row.subject) ?? null));
        if (rows.length === 0) context.print('There are no grants.');
      });
    command
      .command('grant <subject> <object>')
      .description('give a subject a set or actions on an object; replaces what it had')
      .option('--set <set>', 'the name of a set')
      .option('--action <action>', 'one action; repeat for several', (value: string, earlier: string[] | undefined) => [
        ...(earlier ?? []),
        value,
      ])
      .option('--until <time>', 'count until this time, e.g. 2027-01-31T12:00:00Z')
      .action(async (who: string, what: string, options: { set?: string; action?: string[]; until?: string }) => {
        const { db } = await context.app();
        const expiresAt = options.until === undefined ? null : timeOf(options.until, context);
        const given = {
          ...(options.set === undefined ? {} : { set: options.set }),
          ...(options.action === undefined ? {} : { actions: options.action }),
        };
        const row = await told(
          context,
          grant(db, { ...given, subject: await subjectOf(db, who, context), object: refOf(db, what, context), expiresAt, by: ACTOR }),
        );
        show(context, row, `${who} was granted ${describe(row)} on ${what}.`);
      });
    command
      .command('revoke <subject> <object>')
      .description('take the grant of a subject on an object away')
      .action(async (who: string, what: string) => {
        const { db } = await context.app();
        const removed = await told(
          context,
          revoke(db, { subject: await subjectOf(db, who, context), object: refOf(db, what, context), by: ACTOR }),
        );
        context.print(
          context.json
            ? JSON.stringify({ revoked: removed })
            : removed
              ? `The grant of ${who} on ${what} is gone.`
              : `${who} had no grant on ${what}.`,
        );
      });
    command
      .command('explain <user> <object> <action>')
      .description('explain why a user may, or may not, do something to an object; exit code 1 when not')
      .option('--tenant <key>', "the tenant that the user acts in (default: the object's, if the user belongs to it)")
      .action(async (login: string, what: string, action: string, options: { tenant?: string }) => {
        const { db } = await context.app();
        const user = await requireUser(db, login, context);
        const object = refOf(db, what, context);
        const tenant = options.tenant ?? (await tenantFor(db, user, object));
        const explanation = await explainAccess(db, { user, tenant }, object, action).catch((error: Error) => context.fail(error.message));
        if (context.json) context.print(JSON.stringify(explanation, null, 2));
        else if (explanation.allowed) context.print(`Yes. ${explanation.text}`);
        if (!explanation.allowed) context.fail(`No. ${explanation.text}`);
      });
    command
      .command('prune')
      .description('remove grants that expired, and grants on objects that are gone')
      .action(async () => {
        const { db } = await context.app();
        const { expired, orphaned } = await pruneGrants(db);
        context.print(
          context.json
            ? JSON.stringify({ expired, orphaned })
            : `Removed ${expired} expired grants and ${orphaned} on objects that are gone.`,
        );
      });
  },
};

async function subjectOf(db: Db, text: string, context: Context): Promise<string> {
  const found = await findSubject(db, text);
  return 'fault' in found ? context.fail(found.fault) : found.subject;
}

/** The tenant that a user acts in when it opens the object; null where the object has none, or belongs to a tenant of others. */
async function tenantFor(db: Db, user: User, { type, id }: ObjectRef): Promise<string | null> {
  const [object] = await objectChain(db, declarationOf(db, type), id, 0);
  if (object === undefined || object.tenantKey === '') return null;
  const { isInTenant } = grantsState.of(db);
  return isInTenant === undefined || ruleResult('isInTenant', 'objectGrants()', await isInTenant(db, user, object.tenantKey))
    ? object.tenantKey
    : null;
}

async function requireUser(db: Db, login: string, context: Context): Promise<User> {
  return (await findUser(db, login)) ?? context.fail(`There is no user ${JSON.stringify(login)}.`);
}

function objectOf(db: Db, text: string, context: Context): { readonly type: string; readonly id: string } {
  const { objects } = grantsState.of(db);
  const slash = text.indexOf('/');
  const [type, id] = [text.slice(0, Math.max(0, slash)), text.slice(slash + 1)];
  if (slash === -1 || id === '') return context.fail(`${JSON.stringify(text)} is not an object. Write the table and the id: orders/018f….`);
  if (!objects.has(type))
    return context.fail(
      `There are no actions for "${type}".${didYouMean(type, [...objects.keys()])} Known: ${[...objects.keys()].join(', ')}.`,
    );
  return { type, id };
}

function refOf(db: Db, text: string, context: Context): ObjectRef {
  return objectOf(db, text, context);
}

function timeOf(text: string, context: Context): Date {
  const time = new Date(text);
  return Number.isNaN(time.getTime())
    ? context.fail(`--until: ${JSON.stringify(text)} is not a time. Write it like 2027-01-31T12:00:00Z.`)
    : time;
}

/** Faults of fields are sentences on a terminal. */
async function told<T>(context: Context, work: Promise<T>): Promise<T> {
  return work.catch((error: { readonly errors?: readonly { readonly message: string }[] } & Error) => {
    if (error.errors !== undefined && error.errors.length > 0) return context.fail(error.errors.map(({ message }) => message).join(' '));
    throw error;
  });
}

function describe({ actions }: GrantRow): string {
  const { set, actions: list } = shownActions(actions);
  return set ?? (list ?? []).join(', ');
}

function lineOf(row: GrantRow, name: string | null): string {
  const until = row.expires_at === null ? '' : `  until ${row.expires_at.toISOString()}`;
  return `${row.subject}${name === null ? '' : ` (${name})`}  ${row.object_type}/${row.object_id}  ${describe(row)}${until}`;
}

function show(context: Context, row: GrantRow, sentence: string): void {
  context.print(context.json ? JSON.stringify({ id: row.id, ...grantFacts(row) }) : sentence);
}
