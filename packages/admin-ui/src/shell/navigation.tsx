import type { AdminPageShape, AdminResourceShape } from '../api/shapes.ts';
import { Icon, type IconName } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { useLocation } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import css from './shell.module.css';
import { TenantSwitch } from './tenant-switch.tsx';

export function Navigation() {
  const { site } = useSession();
  const { place } = useLocation();
  const current = 'resource' in place ? place.resource : null;
  return (
    <>
      {site.login.site === 'portal' && !site.login.portal?.by_link && <TenantSwitch />}
      <ul className={css['list']}>
        <Item href={hashOf({ page: 'overview' })} icon="overview" label="Overview" isCurrent={place.page === 'overview'} />
      </ul>
      {groups([...site.resources, ...(site.pages ?? [])]).map(([group, resources]) => (
        <div key={group}>
          <h2 className={css['group']}>{group}</h2>
          <ul className={css['list']}>
            {resources.map((resource) => (
              <Item
                key={resource.name}
                href={addressOf(resource)}
                icon={resource.icon}
                label={resource.label}
                isCurrent={current === resource.name}
              />
            ))}
          </ul>
        </div>
      ))}
      {(site.login.portal?.links.length ?? 0) > 0 && (
        <ul className={`${css['list']} ${css['group']}`}>
          {site.login.portal?.links.map(({ label, href }) => (
            <Item key={label} href={href} icon="outside" label={label} isCurrent={false} />
          ))}
        </ul>
      )}
      <p className={css['version']}>Version {site.version}</p>
    </>
  );
}

interface ItemProps {
  readonly href: string;
  /** Absent: the first letters of the label. */
  readonly icon: IconName | undefined;
  readonly label: string;
  readonly isCurrent: boolean;
}

function Item({ href, icon, label, isCurrent }: ItemProps) {
  return (
    <li>
      <a href={href} className={css['item']} aria-current={isCurrent ? 'page' : undefined}>
        {icon === undefined ? <Letters of={label} /> : <Icon name={icon} />}
        {label}
      </a>
    </li>
  );
}

/** A page of its own is beside the site, and not in its fragment. */
function addressOf(page: AdminResourceShape | AdminPageShape): string {
  return 'href' in page && page.href !== undefined ? page.href : hashOf({ page: 'list', resource: page.name });
}

/** `Orders` is `Or`, `Order lines` is `OL`: lists of an application differ at a glance. */
function Letters({ of }: { readonly of: string }) {
  const words = of.split(/\s+/).filter((word) => /^\p{L}/u.test(word));
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => word.charAt(0).toUpperCase()) : [Array.from(of).slice(0, 2).join('')];
  return (
    <span className={css['letters']} aria-hidden="true">
      {letters.join('')}
    </span>
  );
}

/** In the order in which the server names them. */
function groups<T extends AdminResourceShape | AdminPageShape>(resources: readonly T[]): [string, T[]][] {
  return [...Map.groupBy(resources, (resource) => resource.group)];
}
