import type { App } from '../../app/declare/module.ts';
import { operatorsOf, type WhereOperator } from '../../db/sql/where/operators.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { indexWords } from '../../db/sql/where/where-sql.ts';
import { type CustomFilter, isCustomFilter } from '../declare/filter.ts';
import { limits } from '../declare/limits.ts';
import { orderTerm } from '../options/ordering.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import { filteredColumn } from '../parameters/filter-parameters.ts';
import { reservedParameters } from '../read/list-query.ts';
import { inputNames } from './create-faults.ts';

/** What is wrong with the lists of a controller: filters, search, ordering, expansions, pages, and the columns they name. */
export function listFaults(name: string, mounted: MountedResource, app: App): Fault[] {
  return new ListFaults(name, mounted, app).all();
}

class ListFaults {
  readonly #name: string;
  readonly #mounted: MountedResource;
  readonly #app: App;
  readonly #faults: Fault[] = [];

  constructor(name: string, mounted: MountedResource, app: App) {
    this.#name = name;
    this.#mounted = mounted;
    this.#app = app;
  }

  all(): Fault[] {
    this.#filters();
    this.#columns();
    this.#ordering();
    this.#cursors();
    this.#expand();
    this.#lists();
    return this.#faults;
  }

  #add(id: string, message: string, hint?: string): void {
    this.#faults.push({ id, message: `${this.#name}: ${message}`, hint });
  }

  get #columnNames(): string[] {
    return [...this.#mounted.policy.statements.byName.keys()];
  }

  #filters(): void {
    const { policy, options } = this.#mounted;
    const reserved = reservedParameters(this.#mounted.list);
    for (const [path, given] of Object.entries(options.filters ?? {})) {
      if (reserved.has(path)) this.#add('E018', `the filter "${path}" takes the name of a parameter of lists.`, 'Give it another name.');
      if (isCustomFilter(given)) {
        this.#words(path, given);
        continue;
      }
      const operators = given as readonly string[];
      const column = filteredColumn(policy, path, operators as readonly WhereOperator[]);
      if (column === undefined && leadsAway(policy, path)) {
        this.#add('E017', `the filter "${path}" leads to users in another database.`, 'One statement reads both: remove the filter.');
        continue;
      }
      if (column === undefined && isHiddenColumn(policy, path)) {
        this.#add(
          'E016',
          `the filter "${path}" uses a column that no caller can see.`,
          'A filter would reveal the values of a hidden column.',
        );
        continue;
      }
      if (column === undefined) {
        this.#add(
          'E012',
          `the filter "${path}" refers to a column that does not exist or that callers cannot see.`,
          didYouMean(path, this.#columnNames).trim() || 'Custom filters are filter(schema, where).',
        );
        continue;
      }
      if (path.replace('.', '').includes('__'))
        this.#add(
          'E012',
          `the column "${path}" has "__" in its name, which parameters use for operators.`,
          'Offer it as filter(schema, where) under another name.',
        );
      const known: readonly string[] = operatorsOf(column.settings);
      for (const operator of operators) {
        if (!known.includes(operator))
          this.#add(
            'E012',
            `the filter "${path}" cannot have the operator "${operator}".`,
            didYouMean(operator, known).trim() ||
              `${column.settings.encrypted === undefined ? `A ${column.settings.kind}` : 'This encrypted'} column has ${known.join(', ')}.`,
          );
      }
      if (column.column.rule?.visibleTo?.mayNeedObject === true)
        this.#add(
          'E016',
          `the filter "${path}" is on a column whose visibility depends on the row.`,
          'Such a column cannot be filtered, ordered or searched.',
        );
    }
    for (const name of this.#mounted.list.filters.collisions)
      this.#add('E018', `two filters take the parameter "${name}".`, 'Give one of them another name.');
    if (Object.keys(options.filters ?? {}).length > 200) this.#add('E012', 'has more than 200 filters.');
  }

  /** A condition that no index has would read every row. */
  #words(path: string, { words }: CustomFilter): void {
    const { policy } = this.#mounted;
    const known = policy.model.table.indexes.flatMap(({ where }) => where ?? []);
    if (words === undefined || known.some((where) => indexWords(where) === indexWords(words))) return;
    const hint =
      known.length === 0 ? `Add one to the model: { columns: […], where: "${indexWords(words)}" }.` : `Known: ${known.join('; ')}.`;
    this.#add('E012', `the filter "${path}" is in words that no index of "${policy.model.name}" has as its condition.`, hint);
  }

  #columns(): void {
    const { policy, options, list } = this.#mounted;
    for (const [option, given] of [
      ['search', list.search?.columns],
      ['input', options.input],
    ] as const) {
      for (const column of given ?? []) {
        if (!policy.statements.byName.has(column) && !(option === 'search' && isSearchable(policy, column)))
          this.#add(
            'E012',
            `${option} refers to the unknown column "${column}".`,
            didYouMean(column, this.#columnNames).trim() || undefined,
          );
      }
    }
    for (const { id, message, hint } of list.search?.faults?.({ model: policy.model }) ?? []) this.#add(id, message, hint);
    for (const column of list.search?.columns ?? []) {
      if (policy.statements.byName.get(column)?.settings.encrypted !== undefined) continue;
      if (policy.hasColumn(column.split('.', 1)[0] as string) ? !isSeenByAll(policy, column) : isHiddenPath(policy, column))
        this.#add(
          'E016',
          `search uses "${column}", which some callers cannot see.`,
          'A search would reveal the values of a hidden column.',
        );
    }
    for (const column of options.input ?? []) {
      if (policy.statements.byName.has(column) && !inputNames(policy).includes(column))
        this.#add(
          'E012',
          `input takes "${column}", which the resource does not take from clients.`,
          'A controller only narrows the input.',
        );
    }
    const computed = Object.keys(policy.options.computed ?? {});
    for (const column of options.output ?? []) {
      if (!policy.hasColumn(column) && !computed.includes(column))
        this.#add(
          'E012',
          `output refers to the unknown column or computed field "${column}".`,
          didYouMean(column, [...this.#columnNames, ...computed]).trim() || undefined,
        );
      if (policy.hasColumn(column) && widestView(policy).knows(column) === undefined)
        this.#add('E012', `output shows "${column}", which the resource hides.`);
    }
  }

  #ordering(): void {
    const { policy, options } = this.#mounted;
    const { by = [], default: usual = [] } = (options.ordering ?? {}) as {
      readonly by?: readonly string[];
      readonly default?: readonly string[];
    };
    for (const [option, given] of [
      ['ordering.by', by],
      ['ordering.default', usual],
    ] as const) {
      for (const text of given) {
        const { column } = orderTerm(text);
        const declared = policy.statements.byName.get(column);
        if (declared?.settings.encrypted !== undefined) continue;
        const shown = widestView(policy).comparable(column, 'order');
        if (declared === undefined)
          this.#add(
            'E012',
            `${option} refers to the unknown column "${column}".`,
            didYouMean(column, this.#columnNames).trim() || undefined,
          );
        else if (['json', 'array', 'bytes'].includes(declared.definition.kind))
          this.#add('E012', `${option} has "${column}", but ${declared.definition.kind} columns cannot be sorted.`);
        else if (declared.definition.kind === 'text' && (declared.definition.max ?? Infinity) > limits.orderingText)
          this.#add(
            'E012',
            `${option} has "${column}", a text column of more than ${limits.orderingText} characters.`,
            `The value becomes part of the cursor: use t.text(${limits.orderingText}) or shorter.`,
          );
        else if (
          shown === undefined ||
          shown.rule?.visibleTo?.mayNeedObject === true ||
          (option === 'ordering.default' && shown.rule?.visibleTo !== undefined)
        )
          this.#add(
            'E016',
            `${option} has "${column}", which some callers cannot see.`,
            'An order would reveal the values of a hidden column.',
          );
      }
    }
  }

  /** Every ordering that a client may ask for has a cursor that is not too long. */
  #cursors(): void {
    const {
      policy,
      options,
      list,
      limits: { orderingColumns },
    } = this.#mounted;
    if (list.page.style !== 'cursor') return;
    const by = options.ordering?.by ?? [];
    const lengths = by.flatMap((column) => {
      const definition = policy.statements.byName.get(column)?.definition;
      return definition?.kind === 'text' ? Math.min(definition.max ?? 0, limits.orderingText) : [];
    });
    const longest = lengths.toSorted((a, b) => b - a).slice(0, orderingColumns);
    const length = longest.reduce((sum, each) => sum + each, 0);
    if (length > limits.orderingTexts)
      this.#add(
        'E012',
        `limits.orderingColumns is ${orderingColumns}, but that many text columns of ordering.by can have ${length} characters together.`,
        `The values become part of the cursor: use at most ${limits.orderingTexts} characters together, or page: { style: 'offset' }.`,
      );
  }

  #expand(): void {
    const {
      policy,
      options,
      limits: { expandDepth },
    } = this.#mounted;
    for (const path of options.expand ?? []) {
      let at: typeof policy | undefined = policy;
      const steps = path.split('.');
      for (const step of steps) {
        const known: string[] = at === undefined ? [] : Object.keys(at.resource.relations as object);
        const next: typeof policy | undefined = at?.edge(step)?.target;
        if (at !== undefined && !known.includes(step))
          this.#add('E012', `expand refers to the unknown relation "${path}".`, didYouMean(step, known).trim() || undefined);
        at = next;
      }
      if (steps.length > expandDepth) this.#add('E012', `expand has "${path}", deeper than ${expandDepth} relations.`);
    }
  }

  #lists(): void {
    const { policy, options, list } = this.#mounted;
    const route = this.#app.routes.find(
      ({ controller, metadata }) =>
        controller === this.#name && (metadata['crud'] as { operation?: string } | undefined)?.operation === 'list',
    );
    if (route !== undefined && route.permission.mayNeedObject && !route.permission.hasRows)
      this.#add(
        'E022',
        'the list permission depends on the object but has no `rows` condition.',
        'Use the rows of the resource, or a permission with rows.',
      );
    if (options.etag === 'required' && policy.options.version === undefined)
      this.#add(
        'E013',
        'etag is required, but the resource has no version.',
        'Add ...versioned() to the model and version: "version" to the resource.',
      );
    if (list.page.count === 'estimate' && policy.options.unscoped !== true)
      this.#add(
        'E012',
        "count: 'estimate' includes rows of other callers.",
        "Use { upTo: 1000 }, or 'none'; 'estimate' is for resources that are unscoped.",
      );
    if (list.page.style === 'page' && list.page.count !== 'exact')
      this.#add('E012', `page.count is set, but pages with numbers always have the exact count.`, "Remove it, or use style: 'offset'.");
    if (list.page.default > list.page.max) this.#add('E012', `page.default is ${list.page.default}, more than page.max ${list.page.max}.`);
  }
}

function isSeenByAll(policy: Policy, column: string): boolean {
  return widestView(policy).knows(column) !== undefined && policy.ruleOf(column)?.visibleTo === undefined;
}

/** Whether a path leads to a column of one other row that a statement can read. */
function isSearchable(policy: Policy, path: string): boolean {
  const [name = '', column = '', ...deeper] = path.split('.');
  const edge = policy.edge(name);
  return edge?.kind === 'one' && !edge.isLoaded && deeper.length === 0 && edge.target.hasColumn(column);
}

/** Whether not every caller can see a column of a relation, or follow the relation. */
function isHiddenPath(policy: Policy, path: string): boolean {
  if (!isSearchable(policy, path)) return false;
  const [name = '', column = ''] = path.split('.');
  const edge = policy.edge(name);
  return edge !== undefined && (policy.ruleOf(edge.column)?.visibleTo !== undefined || !isSeenByAll(edge.target, column));
}

/** Whether a path leads to users in another database. */
function leadsAway(policy: Policy, path: string): boolean {
  return policy.edge(path.split('.', 1)[0] as string)?.isLoaded === true;
}

/** Whether a path names a column of the model, or of a relation's, that is on no response. */
function isHiddenColumn(policy: Policy, path: string): boolean {
  const [first = '', second, ...deeper] = path.split('.');
  const [holder, name] = second === undefined ? [policy, first] : [policy.edge(first)?.target, second];
  return holder !== undefined && deeper.length === 0 && holder.hasColumn(name) && widestView(holder).knows(name) === undefined;
}
