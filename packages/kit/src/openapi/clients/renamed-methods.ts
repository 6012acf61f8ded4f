import type { ClientLanguage } from './generate-client.ts';

/** Methods of a client whose operation has another method in the next text of it: a line each, in the order of the new ones. */
export function renamedMethods(before: string, after: string, language: ClientLanguage): string[] {
  const [old, current] = [methodsOf(before, language), methodsOf(after, language)];
  return [...current].flatMap(([operation, name]) => {
    const known = old.get(operation);
    return known === undefined || known === name ? [] : [`client.${known} is now client.${name} (${operation}).`];
  });
}

/** By `GET /v1/orders`: `orders.list`. */
function methodsOf(text: string, language: ClientLanguage): ReadonlyMap<string, string> {
  return language === 'python' ? pythonMethods(text) : typescriptMethods(text);
}

function typescriptMethods(text: string): ReadonlyMap<string, string> {
  const operations = new Map(
    [...text.matchAll(/^const (\w+)Operation: Operation = \{ method: "(\w+)", path: "([^"]+)"/gm)].map(([, name = '', method, path]) => [
      name,
      `${method} ${path}`,
    ]),
  );
  const methods = new Map<string, string>();
  for (const [, group = '', members = ''] of text.matchAll(/^ {4}("[^"]+"|\w+): \{\n((?: {6}.*\n)+) {4}\},$/gm))
    for (const [, name = '', called = ''] of members.matchAll(/^ {6}("[^"]+"|\w+): \([^)]*\) => (\w+)\(/gm)) {
      const operation = operations.get(called);
      if (operation !== undefined) methods.set(operation, `${group}.${name}`);
    }
  return methods;
}

function pythonMethods(text: string): ReadonlyMap<string, string> {
  const operations = new Map(
    [...text.matchAll(/^(_\w+) = _Operation\("(\w+)", "([^"]+)"/gm)].map(([, name = '', method, path]) => [name, `${method} ${path}`]),
  );
  const groups = new Map([...text.matchAll(/^ {8}self\.(\w+) = (_\w+)\(self\._http\)$/gm)].map(([, name = '', kind = '']) => [kind, name]));
  const methods = new Map<string, string>();
  for (const part of text.split(/^class /m)) {
    const group = groups.get(/^_\w+/.exec(part)?.[0] ?? '');
    if (group === undefined || /^_Async[A-Z]/.test(part)) continue;
    for (const [, name = '', called = ''] of part.matchAll(/^ {4}def (\w+)\(.*\n.*\n.*self\._http\.(?:request|events)\((_\w+), /gm)) {
      const operation = operations.get(called);
      if (operation !== undefined) methods.set(operation, `${group}.${name}`);
    }
  }
  return methods;
}
