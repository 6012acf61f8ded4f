import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { ControllerBase } from '../../http/compile/controller.ts';
import { TOOL_NAME } from '../../http/compile/value-faults.ts';
import { objectOf, readOptions, type OptionRules } from '../../options/read-options.ts';
import {
  aFunction,
  either,
  filledText,
  flag,
  guard,
  instanceOf,
  listOf,
  recordOf,
  required,
  rule,
  wholeNumber,
} from '../../options/value-rule.ts';
import { Permission } from '../../permissions/permission.ts';
import type { McpPrompt } from './serve/prompts.ts';

type ControllerClass = abstract new (...given: never[]) => ControllerBase;

export interface McpOptions {
  /** Where clients connect. Default: `/mcp`. */
  readonly path?: `/${string}`;
  /** Makes operations tools that do not say so themselves: tags, controllers, or a function. An operation with `tool: false` stays out. */
  readonly include?: readonly (string | ControllerClass)[] | ((route: CompiledRoute) => boolean);
  /**
   * Host names under which clients reach the server, without ports: `['api.example.com']`. Requests for other hosts and from pages of other origins are
   * rejected, against DNS rebinding. Default: the hosts of API_SERVERS, and the names of this machine's loopback interface.
   */
  readonly hosts?: readonly string[];
  /**
   * What access tokens for the endpoint may have in `aud`, in place of its URL, for providers that cannot name it (Entra sends a GUID). Give it a value
   * that tokens for other services do not have.
   */
  readonly audience?: string | readonly string[];
  /** Instructions for the agent, sent when it connects. */
  readonly instructions?: string;
  /**
   * The user of the agent confirms each call of a DELETE, and of an operation with `tool: { destructive: true }`: the client asks where it can, else the
   * agent calls a second time with a token. Default: only calls of operations with `tool: { confirm: true }`.
   */
  readonly confirm?: boolean;
  /** Prompts that agents offer to their users. */
  readonly prompts?: readonly McpPrompt[];
  /** A longer result is replaced by an error that says how to ask for less. Default: 131,072. */
  readonly resultBytesMax?: number;
}

export interface McpSettings {
  readonly path: `/${string}`;
  readonly includes: (route: CompiledRoute) => boolean;
  readonly hosts: readonly string[] | undefined;
  /** Undefined: the URL of the endpoint. */
  readonly audience: readonly string[] | undefined;
  readonly instructions: string | undefined;
  readonly resultBytesMax: number;
  readonly prompts: readonly McpPrompt[];
  readonly confirms: (route: CompiledRoute) => boolean;
}

const isControllerClass = (value: unknown): value is ControllerClass =>
  typeof value === 'function' && value.prototype instanceof ControllerBase;

const included = rule('a tag, or a controller class', (value) => (typeof value === 'string' && value !== '') || isControllerClass(value));

const promptRule = objectOf<McpPrompt>({
  name: required(rule('1 to 128 letters, digits, "_", "." and "-"', (value) => typeof value === 'string' && TOOL_NAME.test(value))),
  description: required(filledText),
  permission: required(instanceOf(Permission, 'a permission, such as isStaff; call the factory: hasScopes()')),
  arguments: recordOf(objectOf<{ description: string; required?: boolean }>({ description: required(filledText), required: flag })),
  text: required(aFunction),
});

const rules: OptionRules<McpOptions> = {
  path: rule('a path such as "/mcp"', (value) => typeof value === 'string' && /^(?:\/[\w.-]+)+$/.test(value)),
  include: either('a list of tags and controllers, or a function', listOf(included), aFunction),
  hosts: listOf(
    rule('a host name without scheme and port, such as "api.example.com"', (value) => typeof value === 'string' && isHostName(value)),
    { min: 1 },
  ),
  audience: guard(either('a non-empty string, or a list of them', filledText, listOf(filledText, { min: 1 }))),
  instructions: filledText,
  confirm: flag,
  prompts: listOf(promptRule),
  resultBytesMax: wholeNumber(1024, 100_000_000),
};

function isHostName(value: string): boolean {
  return URL.parse(`http://${value}`)?.hostname === value.toLowerCase() && !value.includes('/');
}

export function readMcpOptions(given: McpOptions): McpSettings {
  const {
    path = '/mcp',
    include,
    hosts,
    audience,
    instructions,
    confirm = false,
    prompts = [],
    resultBytesMax = 131_072,
  } = readOptions('mcp()', given, rules);
  return Object.freeze({
    path,
    includes: typeof include === 'function' ? include : includedBy(include ?? []),
    hosts: hosts?.map((each) => each.toLowerCase()),
    audience: typeof audience === 'string' ? [audience] : audience,
    instructions,
    resultBytesMax,
    prompts,
    confirms: (route: CompiledRoute) => isConfirmedOperation(route, confirm),
  });
}

function isConfirmedOperation({ method, tool }: CompiledRoute, confirm: boolean): boolean {
  const facts = typeof tool === 'object' ? tool : {};
  return facts.confirm === true || (confirm && (method === 'DELETE' || facts.destructive === true));
}

function includedBy(selected: readonly (string | ControllerClass)[]): McpSettings['includes'] {
  const tags = new Set<string>(selected.filter((each) => typeof each === 'string'));
  const controllers = new Set(selected.filter((each) => typeof each !== 'string').map(({ name }) => name));
  return ({ tags: own, controller }) => own.some((tag) => tags.has(tag)) || controllers.has(controller);
}
