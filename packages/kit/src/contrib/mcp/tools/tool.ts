import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import type { CallerSchemas, ToolFacts } from '../../../http/declare/route.ts';
import type { JsonSchema } from '../../../http/declare/schema.ts';
import { safeMethods } from '../../../permissions/built-ins.ts';
import { Definitions, objectRoot, type Part, plainSchema } from './tool-schema.ts';
import { describedBy } from './tool-description.ts';

/** Where an argument goes. */
export interface ToolArgument {
  readonly part: Part | 'idempotency-key' | 'confirmation';
  /** Its name there; null for the whole body. */
  readonly name: string | null;
  /** How a list is written into the query string. */
  readonly style: 'comma' | 'repeated';
}

export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: false;
}

/** A tool as the protocol has it. */
export interface ToolEntry {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema & { readonly type: 'object' };
  readonly outputSchema?: JsonSchema & { readonly type: 'object' };
  readonly annotations: ToolAnnotations;
}

/** A route as one kind of caller gets it. */
export interface RouteTool {
  readonly route: CompiledRoute;
  readonly entry: ToolEntry;
  readonly arguments: ReadonlyMap<string, ToolArgument>;
  /** Rows of a list, where the caller does not say how many, and the parameter that says it. */
  readonly rows: { readonly parameter: string; readonly count: number } | null;
  /** Each call is confirmed by the user of the agent. */
  readonly confirms: boolean;
}

/** The argument of the second call, where the client cannot ask its user by itself. */
export const CONFIRMATION = 'confirmation_token';

/** A tool that a route cannot be. The message goes after the name of the operation. */
export class UnusableTool extends Error {
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

const TENANT = 'tenant';
/** Rows of a list: an agent reads all of them, and pays for each. */
const ROWS_DEFAULT = 20;

export function toolName({ tool, operationId }: CompiledRoute): string {
  return factsOf(tool).name ?? operationId;
}

export function factsOf(tool: CompiledRoute['tool']): ToolFacts {
  return typeof tool === 'object' ? tool : {};
}

/** Describes a route as a tool; `schemas` replaces those of the route by those of one kind of caller. */
export function toolOf(
  route: CompiledRoute,
  schemas: Partial<ReturnType<CallerSchemas['make']>> = {},
  confirms: boolean = factsOf(route.tool).confirm === true,
): RouteTool {
  refuseOtherContent(route);
  const reader = new ArgumentReader(route);
  reader.part('params', route.params?.json);
  reader.part('query', schemas.query ?? route.query?.json);
  reader.part('headers', route.headers?.json);
  reader.preconditions();
  reader.body(schemas.body ?? route.body?.json);
  reader.idempotencyKey();
  reader.tenant();
  if (confirms) reader.confirmation();
  const { input, rows } = reader.inputSchema();
  const output = outputSchema(route, schemas.response ?? route.response?.json);
  return {
    route,
    entry: {
      name: toolName(route),
      description: describedBy(route),
      inputSchema: input,
      ...(output === undefined ? {} : { outputSchema: output }),
      annotations: annotationsOf(route),
    },
    arguments: reader.arguments,
    rows,
    confirms,
  };
}

function refuseOtherContent({ kind, rawBody, cookies }: CompiledRoute): void {
  const hint = 'Set `tool: false`, and offer the data by an operation with a JSON response.';
  if (kind === 'stream') throw new UnusableTool('a stream of events cannot be a tool.', hint);
  if (kind === 'raw') throw new UnusableTool('a response that is not JSON cannot be the result of a tool.', hint);
  if (rawBody !== undefined) throw new UnusableTool('a body that is not JSON cannot be the arguments of a tool.', hint);
  if (cookies !== undefined && objectRoot(cookies.json)?.required.length !== 0)
    throw new UnusableTool('agents send no cookies, and the operation requires one.', 'Make its cookies optional, or set `tool: false`.');
}

/** One flat object of arguments; beside it, which part of the request each of them belongs to. */
class ArgumentReader {
  readonly arguments = new Map<string, ToolArgument>();
  readonly #route: CompiledRoute;
  readonly #names: Readonly<Record<string, string>>;
  readonly #definitions = new Definitions();
  readonly #properties: Record<string, JsonSchema> = {};
  readonly #required: string[] = [];
  #rows: RouteTool['rows'] = null;

  constructor(route: CompiledRoute) {
    this.#route = route;
    this.#names = factsOf(route.tool).arguments ?? {};
  }

  part(part: Exclude<Part, 'body'>, json: JsonSchema | undefined): void {
    if (json === undefined) return;
    const root = objectRoot(json);
    if (root === undefined) throw new UnusableTool(`the schema of its ${part} is not an object with properties.`, 'Declare an object.');
    const rename = this.#definitions.add(root.defs);
    for (const [name, schema] of Object.entries(root.properties)) {
      const isRequired = root.required.includes(name);
      const described = part === 'query' && (name === 'limit' || name === 'page_size') ? this.#limit(name, schema) : schema;
      this.#add(part, name, rename(described), isRequired, schema['x-style'] === 'comma' ? 'comma' : 'repeated');
    }
  }

  body(json: JsonSchema | undefined): void {
    if (json === undefined) return;
    const whole = this.#names['body'];
    if (whole !== undefined) {
      const { $defs = {}, ...root } = json as { readonly $defs?: Readonly<Record<string, JsonSchema>> };
      this.#add('body', null, this.#definitions.add($defs, root)(root), true);
      return;
    }
    const root = objectRoot(json);
    if (root === undefined)
      throw new UnusableTool(
        'its body is not one object with properties.',
        "Give it a name: tool: { arguments: { body: 'lines' } }, or declare an object.",
      );
    const rename = this.#definitions.add(root.defs, { type: 'object', properties: root.properties, required: root.required, ...root.rest });
    // A QUERY takes the length of its page in both; a page is asked for beside its cursor.
    const { operation } = (this.#route.metadata['crud'] ?? {}) as { readonly operation?: string };
    const isQuery = operation === 'query';
    for (const [name, schema] of Object.entries(root.properties))
      if (!isQuery || this.arguments.get(name)?.part !== 'query') this.#add('body', name, rename(schema), root.required.includes(name));
  }

  /** Conditions that the handler reads itself: `If-Match` as `if_match`. Nothing is kept by an agent, so there is no `If-None-Match`. */
  preconditions(): void {
    const { requestHeaders = {}, requiredHeaders = [] } = (this.#route.metadata['openapi'] ?? {}) as {
      readonly requestHeaders?: Readonly<Record<string, string>>;
      readonly requiredHeaders?: readonly string[];
    };
    for (const [header, description] of Object.entries(requestHeaders)) {
      if (header.toLowerCase() === 'if-none-match') continue;
      this.#add('headers', header, { type: 'string', maxLength: 1000, description }, requiredHeaders.includes(header));
    }
  }

  idempotencyKey(): void {
    const { idempotency } = this.#route;
    if (idempotency === undefined) return;
    const description =
      'Choose a new value, such as a UUID, for each thing to do. Repeat the call with the same value if you do not know whether it succeeded: it is done once.';
    const schema = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$', description };
    this.#set('idempotency_key', schema, idempotency.isRequired, { part: 'idempotency-key', name: null, style: 'repeated' });
  }

  /** An agent that connects without a tenant names one with each call, as the header of the route does. */
  tenant(): void {
    const { tenantHeader } = this.#route;
    if (tenantHeader === undefined || this.arguments.has(TENANT)) return;
    const description = 'The tenant to act in, by its slug or id. Not needed where the connection or the credential has one.';
    this.#set(TENANT, { type: 'string', maxLength: 255, description }, false, { part: 'headers', name: tenantHeader, style: 'repeated' });
  }

  confirmation(): void {
    const description = 'Only after the user has confirmed the call: the token of the first call, which had the same other arguments.';
    this.#set(CONFIRMATION, { type: 'string', maxLength: 100, description }, false, {
      part: 'confirmation',
      name: null,
      style: 'repeated',
    });
  }

  inputSchema(): { readonly input: ToolEntry['inputSchema']; readonly rows: RouteTool['rows'] } {
    const schema = { type: 'object', properties: this.#properties, required: this.#required, additionalProperties: false } as const;
    const $defs = this.#definitions.usedBy(schema);
    const input = plainSchema({ ...schema, ...(Object.keys($defs).length === 0 ? {} : { $defs }) });
    return { input: input as ToolEntry['inputSchema'], rows: this.#rows };
  }

  #limit(parameter: string, schema: JsonSchema): JsonSchema {
    const { type, default: own, maximum } = schema as { readonly type?: unknown; readonly default?: unknown; readonly maximum?: unknown };
    if (type !== 'integer' || typeof own !== 'number' || own <= ROWS_DEFAULT) return schema;
    const count = typeof maximum === 'number' ? Math.min(ROWS_DEFAULT, maximum) : ROWS_DEFAULT;
    this.#rows = { parameter, count };
    return { ...schema, default: count };
  }

  #add(part: Part, name: string | null, schema: JsonSchema, isRequired: boolean, style: ToolArgument['style'] = 'repeated'): void {
    const own = part === 'headers' ? (name as string).toLowerCase().replaceAll('-', '_') : name;
    const argument = this.#names[name === null ? part : `${part}.${name}`] ?? (own as string);
    this.#set(argument, schema, isRequired, { part, name, style });
  }

  #set(name: string, schema: JsonSchema, isRequired: boolean, argument: ToolArgument): void {
    const other = this.arguments.get(name);
    if (other !== undefined)
      throw new UnusableTool(
        `the argument "${name}" is in two parts of the request: ${other.part} and ${argument.part}.`,
        `Name one of them: tool: { arguments: { '${argument.part}.${argument.name ?? name}': 'other_name' } }.`,
      );
    this.arguments.set(name, argument);
    // Not by assignment: a property may be called `__proto__`.
    Object.defineProperty(this.#properties, name, { value: schema, enumerable: true, configurable: true, writable: true });
    if (isRequired) this.#required.push(name);
  }
}

/** Undefined where a result need not have the form of the route's own response. */
function outputSchema({ responses, status }: CompiledRoute, json: JsonSchema | undefined): ToolEntry['outputSchema'] | undefined {
  if (json === undefined) return undefined;
  const isOnlyForm = Object.keys(responses).every((other) => Number(other) === status || Number(other) >= 300);
  const root = isOnlyForm ? objectRoot(json) : undefined;
  if (root === undefined) return undefined;
  const definitions = new Definitions();
  const whole: JsonSchema = { ...root.rest, type: 'object', properties: root.properties, required: root.required };
  const schema = definitions.add(root.defs, whole)(whole);
  const $defs = definitions.usedBy(schema);
  return plainSchema({ ...schema, ...(Object.keys($defs).length === 0 ? {} : { $defs }) }) as ToolEntry['outputSchema'];
}

/** Derived from the route. A route can only ask for more caution. */
function annotationsOf({ method, isRead, status, summary, tool }: CompiledRoute): ToolAnnotations {
  const reads = safeMethods.has(method) || isRead;
  const isDestructive = factsOf(tool).destructive === true;
  const isAdditive = method === 'POST' && status === 201;
  return {
    ...(summary === undefined ? {} : { title: summary }),
    // Clients do not look at `destructiveHint` of a tool that only reads.
    readOnlyHint: reads && !isDestructive,
    destructiveHint: isDestructive || (!reads && !isAdditive),
    idempotentHint: reads || method === 'PUT' || method === 'DELETE',
    openWorldHint: false,
  };
}
