import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import type { Caller } from '../../../http/declare/caller.ts';
import type { Permission } from '../../../permissions/permission.ts';

/** Text that a person chooses from a menu of the agent, filled in by the app. */
export interface McpPrompt {
  /** Letters, digits, `_`, `.` and `-`: `late_orders`. */
  readonly name: string;
  /** What it is for, in a sentence that people read. */
  readonly description: string;
  /** Who has it. */
  readonly permission: Permission;
  /** What the person fills in. Values are text. */
  readonly arguments?: Readonly<Record<string /* 'customer' */, { readonly description: string; readonly required?: boolean }>>;
  /** What the agent gets, as the person's message. Data in it is data that the caller may see: read it as the caller. */
  readonly text: (given: Readonly<Record<string, string | undefined>>, caller: Caller) => string | Promise<string>;
}

/** A prompt as the protocol has it. */
interface PromptEntry {
  readonly name: string;
  readonly description: string;
  readonly arguments?: { readonly name: string; readonly description: string; readonly required: boolean }[];
  [member: string]: unknown;
}

/** Characters of one argument. */
const ARGUMENT_LENGTH_MAX = 10_000;

/** Those of the caller, in the order of their declaration. */
export async function listPrompts(prompts: readonly McpPrompt[], exchange: Exchange): Promise<PromptEntry[]> {
  const found: PromptEntry[] = [];
  for (const prompt of prompts) if (await isOfCaller(prompt, exchange)) found.push(entryOf(prompt));
  return found;
}

function entryOf({ name, description, arguments: given = {} }: McpPrompt): PromptEntry {
  const known = Object.entries(given).map(([each, { description: words, required = false }]) => ({
    name: each,
    description: words,
    required,
  }));
  return { name, description, ...(known.length === 0 ? {} : { arguments: known }) };
}

interface PromptText {
  readonly description: string;
  readonly messages: { readonly role: 'user'; readonly content: { readonly type: 'text'; readonly text: string } }[];
  [member: string]: unknown;
}

/** A prompt that the caller does not have is as unknown as one that does not exist. */
export async function fillPrompt(
  prompts: readonly McpPrompt[],
  exchange: Exchange,
  name: string,
  given: Readonly<Record<string, string>> = {},
): Promise<PromptText> {
  const prompt = prompts.find((each) => each.name === name);
  if (prompt === undefined || !(await isOfCaller(prompt, exchange)))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${name.slice(0, 128)}`);
  const { arguments: known = {}, description } = prompt;
  const faults = [
    ...Object.keys(given).flatMap((each) => (Object.hasOwn(known, each) ? [] : [`"${each.slice(0, 128)}" is not an argument`])),
    ...Object.entries(known).flatMap(([each, { required }]) =>
      required === true && (given[each] ?? '') === '' ? [`"${each}" is required`] : [],
    ),
    ...Object.entries(given).flatMap(([each, text]) =>
      text.length > ARGUMENT_LENGTH_MAX ? [`"${each.slice(0, 128)}" has more than ${ARGUMENT_LENGTH_MAX} characters`] : [],
    ),
  ];
  if (faults.length > 0)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The prompt cannot be filled in: ${faults.slice(0, 10).join('; ')}.`);
  const text = await filled(prompt, given, exchange);
  return { description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}

async function filled({ text }: McpPrompt, given: Readonly<Record<string, string>>, exchange: Exchange): Promise<string> {
  try {
    return await text(given, await exchange.caller());
  } catch (error) {
    // Errors of the app that have words for the caller keep them.
    if (isKitError(error) && error.status < 500)
      throw new ProtocolError(ProtocolErrorCode.InvalidRequest, error.detail, { code: error.code });
    throw error;
  }
}

async function isOfCaller({ name, permission }: McpPrompt, exchange: Exchange): Promise<boolean> {
  try {
    return (await permission.evaluate(exchange)) === true;
  } catch (error) {
    if (!isKitError(error) || error.status >= 500)
      exchange.log.error({ err: error, prompt: name }, 'mcp: the permission of a prompt failed; the prompt is not listed');
    return false;
  }
}
