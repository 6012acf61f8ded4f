import { CLIENT_CAPABILITIES_META_KEY, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import type { App } from '../../../app/declare/module.ts';
import { getOrCreateSecret } from '../../../db/rows/secrets.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { confirmationToken, type ConfirmedCall, isConfirmed } from './confirmation.ts';
import { CONFIRMATION, type RouteTool } from '../tools/tool.ts';
import { toolError, type ToolResult } from './tool-result.ts';

type Arguments = Readonly<Record<string, unknown>>;

const SHOWN_MAX = 4_000;
/** Control and format characters, such as those that turn the direction of a text, and ends of lines. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

const QUESTION = 'confirm';
const DECLINED = toolError({
  code: 'not_confirmed',
  detail: 'The user did not confirm the call. Nothing was done. Do not repeat it unless the user asks for it.',
});

/**
 * Undefined where the call can be made: no confirmation is needed, or it is there. Else the question to the user, by the client where it can ask, or as
 * an error with a token that the second call has to send.
 */
export async function confirmationOf(
  app: App,
  { entry, confirms }: Pick<RouteTool, 'entry' | 'confirms'>,
  exchange: Exchange,
  given: Arguments,
  context: ServerContext,
): Promise<ToolResult | InputRequiredResult | undefined> {
  if (!confirms) return undefined;
  const { [CONFIRMATION]: token, ...args } = given;
  const call: ConfirmedCall = { tool: entry.name, arguments: args, caller: await callerOf(exchange) };
  const secret = await getOrCreateSecret(app.db, 'mcp_confirmations');
  const now = app.clock.now().getTime();
  const name = entry.annotations.title ?? entry.name;
  if (!canAsk(context)) {
    if (isConfirmed(token, call, secret, now)) return undefined;
    return toolError({
      code: 'confirmation_required',
      detail: `Nothing was done. Tell the user what "${name}" will do with these arguments and ask for a confirmation. Then call the tool again with the same arguments and ${CONFIRMATION}.`,
      [CONFIRMATION]: confirmationToken(call, secret, now),
    });
  }
  const answer = inputResponse(context.mcpReq.inputResponses, QUESTION);
  if (answer.kind === 'elicit' && answer.action !== 'accept') return DECLINED;
  if (answer.kind === 'elicit' && isConfirmed(context.mcpReq.requestState(), call, secret, now))
    return answer.content?.[QUESTION] === true ? undefined : DECLINED;
  return inputRequired({
    requestState: confirmationToken(call, secret, now),
    inputRequests: {
      [QUESTION]: inputRequired.elicit({
        message: `${name}: ${shown(args)}`,
        requestedSchema: {
          type: 'object',
          properties: { [QUESTION]: { type: 'boolean', title: `${name}?`, default: false } },
          required: [QUESTION],
        },
      }),
    },
  });
}

/** With the tenant of the connection: the same arguments mean another record in another one. */
async function callerOf(exchange: Exchange): Promise<readonly unknown[]> {
  const { principal } = exchange;
  let tenant: string | null = null;
  try {
    tenant = await exchange.tenant;
  } catch (error) {
    // No member of it: the call will say so.
    if (!isKitError(error) || error.status >= 500) throw error;
  }
  return [principal?.user.id ?? null, principal?.credentialId ?? null, tenant];
}

/** The arguments as a person reads them: no character that hides or turns around others, and no more than a person reads. */
function shown(args: Arguments): string {
  const text = JSON.stringify(args).replaceAll(UNSEEN, (each) => `\\u${each.codePointAt(0)?.toString(16).padStart(4, '0')}`);
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)} … and ${text.length - SHOWN_MAX} characters more`;
}

/** Since 2026-07-28 a result can ask; before, a question needs a session. */
function canAsk({ mcpReq }: ServerContext): boolean {
  const capabilities = (mcpReq.envelope as Readonly<Record<string, unknown>> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  const { elicitation } = (capabilities ?? {}) as { readonly elicitation?: { readonly form?: unknown; readonly url?: unknown } };
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}
