import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import { TOOL_NAME } from '../../../http/compile/value-faults.ts';
import type { Fault } from '../../../options/fault.ts';
import type { McpSettings } from '../options.ts';
import { factsOf, toolName, toolOf, UnusableTool } from './tool.ts';
import { describedBy, isMeaningful } from './tool-description.ts';

/** The operations that are tools, in the order of the route table. */
export function toolRoutes(routes: readonly CompiledRoute[], { includes }: McpSettings): readonly CompiledRoute[] {
  return routes.filter((route) => isTool(route, includes));
}

function isTool(route: CompiledRoute, includes: McpSettings['includes']): boolean {
  const { tool, field, hidden, metadata } = route;
  // The address that stands in for QUERY, for clients that cannot send it.
  if (field === 'queryAlias' && metadata['crud'] !== undefined) return false;
  if (tool !== undefined) return tool !== false;
  return !hidden && includes(route);
}

/** Everything that keeps the operations from being tools, and what agents would not understand. */
export function toolFaults(routes: readonly CompiledRoute[]): Fault[] {
  const faults: Fault[] = [];
  const taken = new Map<string, string>();
  for (const route of routes) {
    const where = `${route.controller}.${route.field}`;
    const name = toolName(route);
    const other = taken.get(name);
    if (!TOOL_NAME.test(name))
      faults.push({
        id: 'E028',
        message: `${where}: "${name}" cannot be the name of a tool: 1 to 128 letters, digits, "_", "." and "-".`,
        hint: "Name it: tool: { name: 'order_list' }.",
      });
    if (other !== undefined)
      faults.push({
        id: 'E028',
        message: `${where}: the tool "${name}" has the name of ${other}.`,
        hint: "Name one of them: tool: { name: '…' }.",
      });
    taken.set(name, where);
    faults.push(...shapeFaults(where, route), ...mappingFaults(where, route));
    if (!isMeaningful(describedBy(route)))
      faults.push({
        id: 'W021',
        message: `${where}: nothing tells an agent what the tool "${name}" does.`,
        hint: "Add a summary, or tool: { description: '…' }: what it does, and when to use it.",
      });
  }
  return faults;
}

function shapeFaults(where: string, route: CompiledRoute): Fault[] {
  try {
    toolOf(route);
    return [];
  } catch (error) {
    if (!(error instanceof UnusableTool)) throw error;
    return [{ id: 'E028', message: `${where}: ${error.message}`, hint: error.hint }];
  }
}

/** A mapping of what does not exist would do nothing. */
function mappingFaults(where: string, route: CompiledRoute): Fault[] {
  const given = Object.keys(factsOf(route.tool).arguments ?? {});
  if (given.length === 0) return [];
  let known: readonly string[];
  try {
    known = [...toolOf(route).arguments.values()].map(({ part, name }) => (name === null ? part : `${part}.${name}`));
  } catch {
    return [];
  }
  return given
    .filter((path) => !known.includes(path))
    .map((path) => ({
      id: 'E028',
      message: `${where}: tool.arguments names "${path}", which the operation does not take.`,
      hint: `Known: ${known.join(', ')}.`,
    }));
}
