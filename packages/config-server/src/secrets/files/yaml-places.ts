import { isAlias, isMap, isScalar, isSeq, parseDocument, type Node } from 'yaml';
import { joinKeyPath } from '../../document/key-path.ts';
import { NotEditable, type Place } from './place.ts';

/** The places of a YAML file that is known to be valid. */
export function yamlPlaces(text: string): Place[] {
  const places: Place[] = [];
  const visit = (node: Node | null, path: readonly string[], inFlow: boolean): void => {
    if (node === null) return;
    const where = path.length === 0 ? 'the top level' : `key ${joinKeyPath(path)}`;
    if (isAlias(node)) throw new NotEditable(`${where} is an alias; write out what it stands for`);
    if (node.anchor !== undefined) throw new NotEditable(`${where} has an anchor; remove it and the aliases of it`);
    if (node.tag !== undefined) throw new NotEditable(`${where} has a tag; write the value without it`);
    const flow = inFlow || ((isMap(node) || isSeq(node)) && node.flow === true);
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        if (!isScalar(key) || typeof key.value === 'symbol' || key.source === '<<') {
          throw new NotEditable(`${where} has a merge key or a key that is not a scalar`);
        }
        visit(value as Node | null, [...path, String((key.value as string | bigint | boolean | null) ?? '')], flow);
      }
    } else if (isSeq(node)) for (const [index, item] of node.items.entries()) visit(item as Node | null, [...path, String(index)], flow);
    if (node.range === undefined || node.range === null) return;
    const [start, valueEnd] = node.range;
    // A block scalar ends with the line feed of its last line, which separates it from what follows.
    const end = start + text.slice(start, valueEnd).trimEnd().length;
    const isBlock = isScalar(node) && (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED');
    const [comment] = (isBlock ? /\s+#.*/.exec(text.slice(start, text.indexOf('\n', start))) : null) ?? [];
    const place = { path, start, end, flow: inFlow, container: !isScalar(node) };
    if (end > start) places.push(comment === undefined ? place : { ...place, comment: comment.trimEnd() });
  };
  const document = parseDocument(text, { intAsBigInt: true, merge: true, logLevel: 'error', uniqueKeys: false });
  visit(document.contents, [], false);
  return places;
}
