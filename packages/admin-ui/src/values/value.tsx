import { Anchor } from '@mantine/core';
import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import type { AdminCellKind, AdminLink, AdminListLink, AdminState } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf, listHash } from '../routing/location.ts';
import { deviceName } from './device.ts';
import { formatDate, formatDuration, formatNumber, webAddress } from './format.ts';
import { JsonView } from './json-view.tsx';
import { Time } from './time.tsx';
import { ToneBadge } from './tone-badge.tsx';
import css from './values.module.css';

interface ValueProps {
  readonly kind: AdminCellKind;
  readonly value: unknown;
  /** Of the column, for what has no words of its own. */
  readonly label: string;
  /** On a record's page: nothing is cut short. */
  readonly whole?: boolean;
}

/** Chips in a cell of a list; the record shows them all. */
const CHIPS_IN_LIST = 4;

/** An integer past 2^53 is a text on the wire; decimals are shown with the digits that they have. */
function numberText(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  const text = plain(value);
  return /^-?\d+$/.test(text) ? formatNumber(BigInt(text)) : text;
}

/** Draws one value by its kind. Values come from people and machines outside: they are text here, whatever they contain. */
export function Value({ kind, value, label, whole = false }: ValueProps) {
  if (value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) {
    return <span className={css['dash']}>–</span>;
  }
  switch (kind) {
    case 'number':
      return <span className={css['number']}>{numberText(value)}</span>;
    case 'bool':
      return <ToneBadge state={value === true ? { value: 'yes', tone: 'good' } : { value: 'no', tone: 'neutral' }} />;
    case 'time':
      return <Time iso={plain(value)} whole={whole} />;
    case 'date':
      return <span className={css['time']}>{formatDate(plain(value))}</span>;
    case 'duration':
      return <span className={css['number']}>{typeof value === 'number' ? formatDuration(value) : plain(value)}</span>;
    case 'progress':
      return <Progress percent={typeof value === 'number' ? value : Number(plain(value))} label={label} />;
    case 'state':
      return isState(value) ? <ToneBadge state={value} /> : <ToneBadge state={{ value: plain(value), tone: 'neutral' }} />;
    case 'chips':
      return <Chips values={Array.isArray(value) ? value.map(plain) : [plain(value)]} whole={whole} />;
    case 'link':
      return isLink(value) || isListLink(value) ? <InnerLink link={value} /> : <Text text={plain(value)} whole={whole} />;
    case 'url':
      return <WebLink text={plain(value)} whole={whole} />;
    case 'code':
      return <Text text={plain(value)} whole={whole} code />;
    case 'device':
      return (
        <span title={plain(value)}>
          <Text text={deviceName(plain(value))} whole={whole} />
        </span>
      );
    case 'json':
      return whole ? (
        <JsonView value={value} label={label} />
      ) : (
        <Text text={typeof value === 'string' ? value : JSON.stringify(value)} whole={false} code />
      );
    default:
      return <Text text={plain(value)} whole={whole} />;
  }
}

/** The browser's own element: screen readers know it. */
function Progress({ percent, label }: { readonly percent: number; readonly label: string }) {
  return (
    <span className={css['progress']}>
      <progress max={100} value={percent} aria-label={label} />
      <span className={css['number']}>{percent} %</span>
    </span>
  );
}

/** A word longer than this may break. */
const WORD_LENGTH_MAX = 24;

function Text({ text, whole, code = false }: { readonly text: string; readonly whole: boolean; readonly code?: boolean }) {
  const isLong = text.split(/\s/).some((word) => word.length > WORD_LENGTH_MAX);
  // A number of an order does not break at its hyphen.
  const isWord = !isLong && !/\s/.test(text);
  return (
    <span
      className={clsx(css[whole ? 'whole' : 'clamp'], code && css['code'])}
      data-long={isLong ? '' : undefined}
      data-word={isWord ? '' : undefined}
    >
      {isLong && !whole ? breakable(text) : text}
    </span>
  );
}

/** Addresses and dotted names break after their separators rather than anywhere. */
export function breakable(text: string): ReactNode[] {
  return text.split(/(?<=[/._:-])/).flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]));
}

function Chips({ values, whole }: { readonly values: readonly string[]; readonly whole: boolean }) {
  const shown = whole ? values : values.slice(0, CHIPS_IN_LIST);
  const rest = values.slice(shown.length);
  return (
    <span className={css['chips']}>
      {shown.map((value) => (
        <span key={value} className={css['chip']} data-long={value.length > WORD_LENGTH_MAX ? '' : undefined}>
          {value}
        </span>
      ))}
      {rest.length > 0 && (
        <span className={css['chip']} title={rest.join(', ')}>
          +{rest.length}
        </span>
      )}
    </span>
  );
}

function InnerLink({ link }: { readonly link: AdminLink | AdminListLink }) {
  const href = 'id' in link ? hashOf({ page: 'record', resource: link.resource, id: link.id }) : listHash(link.resource, link.filters);
  return (
    <Anchor href={href} size="sm">
      <Text text={link.text} whole={false} />
    </Anchor>
  );
}

function WebLink({ text, whole }: { readonly text: string; readonly whole: boolean }) {
  const address = webAddress(text);
  const shown = <Text text={text} whole={whole} code />;
  if (address === null || !whole) return shown;
  return (
    <Anchor href={address} target="_blank" rel="noreferrer noopener" size="sm" aria-label={`${text} (opens outside the site)`}>
      {shown} <Icon name="outside" size={12} />
    </Anchor>
  );
}

/** A value as text, also when it is not of the kind its column says. */
export function plain(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (isLink(value) || isListLink(value)) return value.text;
  if (isState(value)) return value.value;
  return JSON.stringify(value) ?? '';
}

function isState(value: unknown): value is AdminState {
  return typeof value === 'object' && value !== null && 'value' in value && 'tone' in value && typeof value.value === 'string';
}

function isLink(value: unknown): value is AdminLink {
  return typeof value === 'object' && value !== null && 'resource' in value && 'id' in value && 'text' in value;
}

function isListLink(value: unknown): value is AdminListLink {
  return typeof value === 'object' && value !== null && 'resource' in value && 'filters' in value && 'text' in value;
}
