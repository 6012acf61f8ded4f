import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, visitorKeys } from 'oxc-parser';

const sources = join(import.meta.dirname, '..', 'src');

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A sentence as the documentation writes it: `…` where the code puts something in. */
function sentencesOf(node: unknown): string[] {
  const { type, ...rest } = node as Node;
  if (type === 'Literal') return typeof rest['value'] === 'string' ? [rest['value']] : [];
  if (type === 'TemplateLiteral') {
    return [(rest['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…')];
  }
  if (type === 'ConditionalExpression') return [...sentencesOf(rest['consequent']), ...sentencesOf(rest['alternate'])];
  if (type === 'BinaryExpression') {
    const [left] = sentencesOf(rest['left']);
    const [right] = sentencesOf(rest['right']);
    return [`${left ?? '…'}${right ?? '…'}`];
  }
  return [];
}

function walk(node: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(node)) {
    for (const child of node) walk(child, visit);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  visit(node as Node);
  for (const key of visitorKeys[(node as Node).type] ?? []) walk((node as Node)[key], visit);
}

/** Sentences found in the server's sources at the places `pick` points out, each once, as the documentation writes them. */
export function sentencesWhere(pattern: string, pick: (node: Node) => unknown[]): string[] {
  const found = new Set<string>();
  for (const file of globSync(pattern, { cwd: sources }).filter((name) => !name.endsWith('.test.ts'))) {
    const path = join(sources, file);
    walk(parseSync(path, readFileSync(path, 'utf8')).program, (node) => {
      for (const place of pick(node)) for (const sentence of sentencesOf(place)) if (sentence.includes(' ')) found.add(sentence);
    });
  }
  return [...found].sort();
}

/** What is said about a problem: the arguments of `problem(…)`, the properties `message` and `problem`, and named hints. */
export function refusalSentences(): string[] {
  return sentencesWhere('{server.ts,{config,tls,section,roster}/**/*.ts}', (node) => {
    if (node.type === 'CallExpression' && calleeName(node) === 'problem') return node['arguments'] as unknown[];
    if (node.type === 'Property' && ['message', 'problem', 'crl'].includes(nameOf(node['key']))) return [node['value']];
    if (node.type === 'VariableDeclarator' && /^([A-Z_]+|message)$/.test(nameOf(node['id']))) return [node['init']];
    return [];
  });
}

/** What is said about a document that does not load. */
export function loadFailureSentences(): string[] {
  return sentencesWhere('{document,section,git}/**/*.ts', (node) => {
    if (node.type === 'CallExpression' && calleeName(node) === 'gitFailure') return (node['arguments'] as unknown[]).slice(1);
    if (node.type === 'CallExpression' && calleeName(node) === 'fail') return node['arguments'] as unknown[];
    if (node.type === 'NewExpression' && nameOf(node['callee']) === 'LoadFailure') return (node['arguments'] as unknown[]).slice(2);
    if (node.type === 'CallExpression' && calleeName(node) === 'unrepresentable') return node['arguments'] as unknown[];
    return [];
  });
}

/** What is said about a secret that cannot be opened: made where only the key is known, and put behind it. */
export function secretSentences(): string[] {
  return sentencesWhere('secrets/*.ts', (node) => {
    if (node.type === 'NewExpression' && nameOf(node['callee']) === 'LoadFailure') return (node['arguments'] as unknown[]).slice(2);
    if (node.type === 'CallExpression' && ['failure', 'fail'].includes(calleeName(node))) return node['arguments'] as unknown[];
    if (node.type === 'Property') return [node['value']];
    if (node.type === 'ReturnStatement' && node['argument'] !== null) return [node['argument']];
    return [];
  }).filter((sentence) => !/^(?:key )?… (?:refers to …, which )?…$/.test(sentence));
}

function calleeName(node: Node): string {
  const callee = node['callee'] as Node;
  return callee.type === 'MemberExpression' ? nameOf(callee['property']) : nameOf(callee);
}

function nameOf(node: unknown): string {
  const { name, value } = (node ?? {}) as { name?: string; value?: unknown };
  return name ?? (typeof value === 'string' ? value : '');
}
