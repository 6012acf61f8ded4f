import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  API,
  type Checker,
  type Program,
  SignatureKind,
  type Symbol as ApiSymbol,
  SymbolFlags,
  type Type,
  type TypeReference,
} from 'typescript/unstable/sync';
import { beforeAll, expect, test } from 'vitest';
import { root } from '../architecture/module-graph.ts';

const config = join(import.meta.dirname, 'exports.tsconfig.json');
const kit = join(root, 'packages', 'kit');

/** Kysely's own, under another name. */
const FOREIGN = new Set(['sqlFragment']);
/** The exports that the guides begin with: each shows its use. */
const MAIN = new Set(
  `createApp Controller route page defineErrors errors raw multipart hasScopes hasRule all any isOwner model t migration find list
   insert update openDatabase CrudController resource filter one many visibleTo writableBy job startJob jobs uploads webhooks publish
   audit accounts apiKeys createApiKey objectActions objectGrants hasGrant grant grants sharing service clientThrottle userThrottle
   testApp definePlugin verifySignature domainEvent on emit seed admin modelResource crudOf requestLog metrics tracing jwtBearer`.split(
    /\s+/,
  ),
);

interface Described {
  /** `./crud resource`. */
  readonly name: string;
  readonly documentation: string;
  readonly hasExample: boolean;
  readonly isValue: boolean;
}

const exported: Described[] = [];
/** Options without a description, by the shortest way to them: `./crud resource(options).owner`. */
const undescribed: string[] = [];
let optionCount = 0;

/** Types of options that no exported function takes, known by their names. */
const OPTIONS = /(?:Options|Definition|Settings)$/;

/** Functions take these, and users do not write them: the toolkit creates them, or another library does, or no value has the type. */
const NOT_WRITTEN = new Set(
  `App Database Db SqlExecutor SyncSqlExecutor Model ReferenceTarget Migration MigrationModule Resource AnyResourceOptions ResourceDeclaration
   Registration Service EventHandler DomainEvent JobDeclaration Seed Host CompiledRoute RouteSchema Route FieldRule ObjectActions WhereSql
   WhereRelation StartedJob Webhooks Jobs Principal Log DbLog MetricRegistry MapEntry
   BetterSqlite3Database DrizzleSqliteTransaction DrizzlePostgresTransaction KyselyTransaction MikroOrmEntityManager PgClient PrismaTransaction
   TypeOrmEntityManager BetterAuthInstance BullQueueLike PgBossLike JsonSchema Schema
   UseClientThrottleOrUserThrottle UseResourceOfTheModel UseVisibleToOrWritableBy CallThePermissionFunction SetTheStateOption GiveEachControllerAPath
   FiltersAreOperatorsByColumn`.split(/\s+/),
);
/** Types without a name that users do not write: operations of migrations, rows of tables, and classes that `CrudController()` creates. */
const NOT_WRITTEN_IN =
  /(?:db\/migrations\/operation|db\/values\/standard-schema|contrib\/\w+\/models|contrib\/grants\/serve\/sharing|db\/declare\/standard-columns)\.ts$/i;

beforeAll(() => {
  const { exports } = JSON.parse(readFileSync(join(kit, 'package.json'), 'utf8')) as {
    exports: Record<string, { source: string } | string>;
  };
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} cannot be opened.`);
    const { checker, program } = project;
    lookAtConfigServer(checker, program);
    const seen = new Set<number>();
    const written = new WrittenTypes(checker);
    for (const [subpath, target] of Object.entries(exports)) {
      const file = typeof target === 'string' ? undefined : program.getSourceFile(join(kit, target.source));
      const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
      if (module === undefined) continue;
      for (const each of checker.getExportsOfModule(module)) {
        const symbol = (each.flags & SymbolFlags.Alias) === 0 ? each : checker.getAliasedSymbol(each);
        if (FOREIGN.has(each.name) || seen.has(symbol.id)) continue;
        seen.add(symbol.id);
        const isValue = (symbol.flags & SymbolFlags.Value) !== 0;
        const documentation = checker.getDocumentationCommentOfSymbol(symbol);
        // A block of code in the comment is an example, too: editors show both alike.
        const hasExample = documentation.includes('```') || checker.getJsDocTagsOfSymbol(symbol).some(({ name }) => name === 'example');
        exported.push({ name: `${subpath} ${each.name}`, documentation, hasExample, isValue });
        const place = `${subpath} ${each.name}`;
        if (isValue) written.lookAtParameters(symbol, place);
        else if (OPTIONS.test(each.name)) written.lookAt(checker.getDeclaredTypeOfSymbol(symbol), place);
      }
    }
  } finally {
    api.close();
  }
}, 300_000);

/** Its options are few and have names: every member of an exported type counts. */
function lookAtConfigServer(checker: Checker, program: Program): void {
  for (const entry of ['index.ts', 'client/index.ts']) {
    const file = program.getSourceFile(join(root, 'packages', 'config-server', 'src', entry));
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    if (module === undefined) throw new Error(`config-server/src/${entry} is not part of ${config}.`);
    for (const each of checker.getExportsOfModule(module)) {
      const symbol = (each.flags & SymbolFlags.Alias) === 0 ? each : checker.getAliasedSymbol(each);
      const isValue = (symbol.flags & SymbolFlags.Value) !== 0;
      if (isValue)
        exported.push({
          name: `config-server ${each.name}`,
          documentation: checker.getDocumentationCommentOfSymbol(symbol),
          hasExample: false,
          isValue,
        });
      else
        for (const member of checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)))
          if (/\/config-server\/src\//i.test(member.declarations[0]?.path ?? '') && checker.getDocumentationCommentOfSymbol(member) === '')
            undescribed.push(`config-server ${each.name}.${member.name}`);
    }
  }
}

const isOurs = (symbol: ApiSymbol | undefined): boolean => /\/packages\/kit\/src\//i.test(symbol?.declarations[0]?.path ?? '');

/** Walks what a user writes for a parameter: its members, what their functions return, and so on. */
class WrittenTypes {
  readonly #checker: Checker;
  readonly #seen = new Set<string>();

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  lookAtParameters(symbol: ApiSymbol, place: string): void {
    const type = this.#checker.getTypeOfSymbol(symbol);
    if (type === undefined) return;
    for (const kind of [SignatureKind.Call, SignatureKind.Construct])
      for (const signature of this.#checker.getSignaturesOfType(type, kind))
        for (const parameter of signature.getParameters())
          this.lookAt(this.#checker.getTypeOfSymbol(parameter), `${place}(${parameter.name})`);
  }

  lookAt(type: Type | undefined, place: string): void {
    if (type === undefined) return;
    if (type.isUnionType() || type.isIntersectionType()) for (const part of type.getTypes()) this.lookAt(part, place);
    else if (type.isTypeParameter()) this.lookAt(this.#checker.getConstraintOfTypeParameter(type), place);
    else if (this.#checker.isArrayType(type) || type.isTupleType()) this.#lookAtArguments(type as TypeReference, `${place}[]`);
    else if (type.isObjectType()) this.#lookAtObject(type, place);
  }

  #lookAtArguments(type: TypeReference, place: string): void {
    for (const each of this.#checker.getTypeArguments(type)) this.lookAt(each, place);
  }

  #lookAtObject(type: Type, place: string): void {
    const symbol = type.getSymbol();
    const [declared] = symbol?.declarations ?? [];
    const key = declared === undefined ? `type ${type.id}` : `${declared.path}:${declared.index}`;
    if (this.#seen.has(key) || isNotWritten(symbol)) return;
    this.#seen.add(key);
    for (const signature of this.#checker.getSignaturesOfType(type, SignatureKind.Call))
      this.lookAt(this.#checker.getReturnTypeOfSignature(signature), `${place}()`);
    for (const { valueType } of this.#checker.getIndexInfosOfType(type)) this.lookAt(valueType, `${place}[name]`);
    if (symbol?.name === 'Promise') return this.#lookAtArguments(type as TypeReference, place);
    for (const member of this.#checker.getPropertiesOfType(type).filter(isOurs)) {
      optionCount += 1;
      const name = `${place}.${member.name}`;
      if (!isNotWritten(member) && this.#checker.getDocumentationCommentOfSymbol(member) === '') undescribed.push(name);
      this.lookAt(this.#checker.getTypeOfSymbol(member), name);
    }
  }
}

/** Classes are created by the toolkit, too; a type without a name is one of its file. */
function isNotWritten(symbol: ApiSymbol | undefined): boolean {
  if (symbol === undefined) return false;
  const isClass = (symbol.flags & SymbolFlags.Class) !== 0;
  return isClass || NOT_WRITTEN.has(symbol.name) || NOT_WRITTEN_IN.test(symbol.declarations[0]?.path ?? '');
}

test('every exported function, class and constant has a description', () => {
  expect(exported.filter(({ isValue, documentation }) => isValue && documentation === '').map(({ name }) => name)).toEqual([]);
});

test('every option that an exported function takes has a description, whether its type has a name or not', () => {
  expect(undescribed).toEqual([]);
  // That the walk found them: fewer is a fault of this test.
  expect(optionCount).toBeGreaterThan(1_000);
});

test('each main export has an example', () => {
  const known = new Set(exported.map(({ name }) => name.split(' ')[1]));
  expect([...MAIN].filter((name) => !known.has(name))).toEqual([]);
  const without = exported.filter(({ name, hasExample }) => MAIN.has(name.split(' ')[1] ?? '') && !hasExample);
  expect(without.map(({ name }) => name)).toEqual([]);
});
