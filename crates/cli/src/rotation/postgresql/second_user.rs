//! The second of two alternating users: made once, and taken over by nobody.
//!
//! Anybody who can write a secret chooses the user's name in it, and the rotation then sets the password of the other
//! name with the rights of `masterarn`. A role that merely has that name must therefore stay as it is.

use outlast_store::postgres::Client as Connection;

use super::{CLONE, run};

/// Makes `user`, which takes turns with `current`, unless it exists. One that exists must be half of the pair already.
///
/// The original may have any rights of its own, as the second user can become it (SET ROLE). The second user may have
/// none of the attributes that members do not inherit, because the original could not have had them given.
pub(super) async fn prepare(
    connection: &Connection,
    current: &str,
    user: &str,
) -> Result<(), String> {
    let is_original = current.ends_with(CLONE);
    let (original, second) = if is_original { (user, current) } else { (current, user) };
    // Before PostgreSQL 16 every role can make others its members. Such a membership shows nothing about the member.
    let query = "\
        SELECT role.rolsuper OR role.rolcreaterole OR role.rolcreatedb OR role.rolreplication OR role.rolbypassrls,
            EXISTS (
                SELECT FROM pg_catalog.pg_auth_members AS membership
                JOIN pg_catalog.pg_roles AS original ON original.oid = membership.roleid
                JOIN pg_catalog.pg_roles AS second ON second.oid = membership.member
                WHERE original.rolname = $2 AND second.rolname = $3
                    AND membership.grantor NOT IN (original.oid, second.oid))
        FROM pg_catalog.pg_roles AS role WHERE role.rolname = $1";
    let failed = |_| "the database does not answer".to_owned();
    let found = connection.query_opt(query, &[&user, &original, &second]).await.map_err(failed)?;
    let Some(row) = found else {
        if is_original {
            return Err(format!(
                "the database has no user {user}, of which {current} is the second user"
            ));
        }
        // One message is one transaction: a user without the membership would be refused from then on. The name that
        // is granted is the original's.
        return run(connection, "CREATE ROLE %1$I WITH LOGIN; GRANT %2$I TO %1$I", user, current)
            .await;
    };
    let (is_powerful, is_pair): (bool, bool) =
        (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    if !is_pair {
        return Err(format!(
            "the database has a user {user} already, and {second} was not made a member of {original} by an \
             administrator: make it one (GRANT) if the two are meant to alternate, or drop the user that is in the way"
        ));
    }
    if is_powerful && !is_original {
        return Err(format!(
            "the user {user} has SUPERUSER, CREATEROLE, CREATEDB, REPLICATION or BYPASSRLS: take these from it, because \
             a user never gets more by a rotation than it had"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use outlast_store::postgres::log_in;
    use outlast_store::testing::{PASSWORD, Postgres};

    use super::*;

    const SQL: &str = "
        CREATE ROLE fresh LOGIN;
        CREATE ROLE stranger LOGIN; CREATE ROLE stranger_clone LOGIN;
        CREATE ROLE reversed LOGIN; CREATE ROLE reversed_clone LOGIN; GRANT reversed_clone TO reversed;
        CREATE ROLE pair LOGIN; CREATE ROLE pair_clone LOGIN; GRANT pair TO pair_clone;
        CREATE ROLE far LOGIN; CREATE ROLE middle; CREATE ROLE far_clone LOGIN; GRANT far TO middle; GRANT middle TO far_clone;
        CREATE ROLE strong LOGIN CREATEDB; CREATE ROLE strong_clone LOGIN; GRANT strong TO strong_clone;
        CREATE ROLE \"Odd \"\"name'\" LOGIN;
        CREATE ROLE lone_clone LOGIN;
        CREATE ROLE own LOGIN; CREATE ROLE own_clone LOGIN;
        SET SESSION AUTHORIZATION own;
        DO $$ BEGIN EXECUTE 'GRANT own TO own_clone'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
        RESET SESSION AUTHORIZATION;";

    #[tokio::test]
    async fn only_a_pair_that_an_administrator_made_alternates() {
        let Some(postgres) = Postgres::shared() else { return };
        postgres.execute("postgres", SQL);
        for power in ["SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS"] {
            let name = power.to_lowercase();
            let sql = format!(
                "CREATE ROLE {name} LOGIN; CREATE ROLE {name}_clone LOGIN {power}; GRANT {name} TO {name}_clone"
            );
            postgres.execute("postgres", &sql);
        }
        let (_, port) = postgres.folder_and_port();
        let url = format!("postgres://127.0.0.1:{port}/postgres");
        let connection = log_in(&url, None, "outlast", PASSWORD).await.ok().unwrap();
        let refusal =
            async |current: &str, user: &str| prepare(&connection, current, user).await.err();
        for (current, user) in [
            ("pair", "pair_clone"),
            ("pair_clone", "pair"),
            // A membership is all that a pair needs: what the original may do, the second user may do anyway.
            ("strong_clone", "strong"),
            ("strong", "strong_clone"),
            // Made, and found the next time.
            ("fresh", "fresh_clone"),
            ("fresh", "fresh_clone"),
            ("fresh_clone", "fresh"),
            ("Odd \"name'", "Odd \"name'_clone"),
            ("Odd \"name'_clone", "Odd \"name'"),
        ] {
            assert_eq!(refusal(current, user).await, None, "{current} to {user}");
        }
        for (current, user, part) in [
            ("stranger", "stranger_clone", "was not made a member"),
            ("stranger_clone", "stranger", "was not made a member"),
            ("reversed", "reversed_clone", "was not made a member"),
            ("far", "far_clone", "was not made a member"),
            ("own", "own_clone", "was not made a member"),
            // `outlast` is the superuser.
            ("outlast_clone", "outlast", "was not made a member"),
            ("lone_clone", "lone", "has no user lone"),
            ("superuser", "superuser_clone", "take these from it"),
            ("createrole", "createrole_clone", "take these from it"),
            ("createdb", "createdb_clone", "take these from it"),
            ("replication", "replication_clone", "take these from it"),
            ("bypassrls", "bypassrls_clone", "take these from it"),
        ] {
            let refused = refusal(current, user).await.unwrap_or_default();
            assert!(refused.contains(part), "{current} to {user}: {refused}");
        }
    }
}
