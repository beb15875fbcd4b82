BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0018');
CREATE TABLE announcements (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	audience JSON NOT NULL, 
	CONSTRAINT pk_announcements PRIMARY KEY (id)
);
INSERT INTO "announcements" VALUES('news-cb055be985',1.79489783322062873842e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["ada"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-0c02fac02f',1.79489783331955456732e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["ada", "robots"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-1',1.0,'source','src-1','{}');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-8a5e9199c7',1,X'7365616C6564');
CREATE TABLE audit_entries (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	user TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	details JSON NOT NULL, 
	token_id TEXT NOT NULL, 
	address TEXT NOT NULL, 
	CONSTRAINT pk_audit_entries PRIMARY KEY (id)
);
INSERT INTO "audit_entries" VALUES('aud-6f664ffcca',1.79489782929294109346e+09,'','token.add','root','{"name": "first login"}','','');
INSERT INTO "audit_entries" VALUES('aud-71db7ba7ca',1.79489783295863699914e+09,'root','token.add','root','{"id": "645bef73ff", "name": "", "scopes": ["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"], "expires_at": 1802673832.957827}','1928af44f5','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-37db98f9e8',1.79489783302509355545e+09,'root','user.add','ada','{"is_admin": false}','645bef73ff','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-b5345a981f',1.79489783307553195951e+09,'ada','team.add','robots','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-a5c525e568',1.7948978332331998348e+09,'ada','environment.push','ada/sums@0.1.0','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-0164b04482',1.79489783331672239303e+09,'ada','role.set','ada/sums','{"holder": "robots", "role": "read"}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-81b039fcad',1.79489783335555362696e+09,'ada','secret.add','ada SHARED_KEY','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-7ab735901f',1.79489783338434839244e+09,'ada','secret.link','ada/sums SHARED_KEY','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-02c2c4b2b8',1.79489783340138387684e+09,'ada','secret.add','ada/sums SUMS_KEY','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-c9e35dd2fd',1.79489783341406965253e+09,'ada','variable.add','ada/sums REGION','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-bd2fa7d77b',1.79489783343518280985e+09,'root','price.set','parrot','{"input_usd_per_million": 1.0, "output_usd_per_million": 2.0, "cached_usd_per_million": null}','645bef73ff','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-6fe027ff3b',1.79489783344422030447e+09,'root','balance.grant','ada','{"amount_usd": 5.0}','645bef73ff','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-ae557a5856',1.79489783352160382269e+09,'ada','run.upload','run-ced1eec710','{}','855659e927','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-200a6bd769',1.79489783363521885868e+09,'ada','run.start','run-8a5e9199c7','{"environment": "ada/sums", "model": "parrot"}','855659e927','127.0.0.1');
CREATE TABLE browser_sessions (
	id TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_browser_sessions_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "browser_sessions" VALUES('session-1',X'68617368','1928af44f5',1.0,2.0);
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('e044410595e376da56a5',1.79489783346971559525e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('855659e927','robots',X'01EB060EDBE24C63295A4578EF79868D7EDDCE04E2F46EF1F918EFA0561EE97B8E395DF3E2C8E5743A636EBEC70D001C2ECF600195D2A8BC16CC7275C640CDC1C70E564B2328704F9BD2EE6861BC6306972846E433DDBDC76B9BEC425952125D29B080EFF0B0ED73A2DD424068C6EB6D3CAA45714394F2F31567ADA19805E6B24373CEF385',1.79489783308018040651e+09);
CREATE TABLE dataset_uploads (
	id TEXT NOT NULL, 
	person TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	format TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	visibility TEXT, 
	description TEXT, 
	created_at DOUBLE NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_uploads PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_uploads_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "dataset_uploads" VALUES('upload-1','ada','ada','more','jsonl',9,NULL,NULL,1.0,1.0);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-1f43ca7c05','ada','grant',5000000,NULL,'grant:d5ed525b8a5283719ffb','welcome',1.79489783344291806222e+09);
INSERT INTO "entries" VALUES('ent-17f65e840a','ada','charge',-3,NULL,'calls:e044410595e376da56a5','',1.79489783349220156666e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-5a8a257102','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79489783320140051841e+09,1.79489783321568298337e+09,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-ced1eec710',1,X'7B22736571223A312C226174223A313739343839373833332E353130383032352C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-ced1eec710',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-ced1eec710',3,X'7B22736571223A332C226174223A313739343839373833332E353338393931352C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-ced1eec710',4,X'7B22736571223A342C226174223A313739343839373833332E353338393931352C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-ced1eec710',5,X'7B22736571223A352C226174223A313739343839373833332E353338393931352C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-ced1eec710',6,X'7B22736571223A362C226174223A313739343839373833332E353635353035352C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-8a5e9199c7',1,X'7B22736571223A312C226174223A313739343839373833332E3632373132372C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-8a5e9199c7',2,X'7B22736571223A322C226174223A313739343839373833332E363335373434332C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE files (
	sha256 TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_files PRIMARY KEY (sha256), 
	CONSTRAINT uq_files_key UNIQUE ("key")
);
INSERT INTO "files" VALUES('a82c35639d2322e2344cf3386a751dff851b7c478c27531cc93b396bc7d62b78','a8/a82c35639d2322e2344cf3386a751dff851b7c478c27531cc93b396bc7d62b78-ab055952',918,1.79489783317022371291e+09);
INSERT INTO "files" VALUES('eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40','ea/eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40-d29d22cf',217,1.79489783317260217666e+09);
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-8a5e9199c7','ada',1000000);
CREATE TABLE leases (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	until DOUBLE NOT NULL, 
	is_wanted BOOLEAN NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('sweep','server-1',1,1.0,0);
CREATE TABLE login_codes (
	code_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_login_codes PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_codes_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "login_codes" VALUES(X'80A38029B479441596C6D92BD3AFC815888F72FC8309F9E32BDE09FD3903184D','1ee47b3431',1.79489782930648303035e+09,1.79490142930648303035e+09,NULL);
INSERT INTO "login_codes" VALUES(X'68617368','1928af44f5',1.0,2.0,NULL);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-8a5e9199c7','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-8a5e9199c7',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-5a8a257102','robots','read');
CREATE TABLE rollout_entries (
	run_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	entry BLOB NOT NULL, 
	CONSTRAINT pk_rollout_entries PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_rollout_entries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollout_entries" VALUES('run-ced1eec710',1,X'92DC00140100A673636F726564CB3FF0000000000000CB0000000000000000CB000000000000000000000001C081A57269676874CB3FF0000000000000A0A0A0A0A0A0A0A0969400000000C0C0808080');
INSERT INTO "rollout_entries" VALUES('run-ced1eec710',2,X'92DC0014A374776F00AB6D6F64656C5F6572726F72C0CB0000000000000000CB000000000000000000000001C080AA4D6F64656C4572726F72A0A0A0A0A0A0A096940000000084A56572726F72AA4D6F64656C4572726F72A76D657373616765A0A57068617365A0A86C6F636174696F6EA0C0808080');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, segment INTEGER, segment_start BIGINT, segment_bytes INTEGER, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-ced1eec710','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7',NULL,NULL,NULL);
INSERT INTO "rollouts" VALUES('run-ced1eec710','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F',NULL,NULL,NULL);
CREATE TABLE run_comments (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	task_key TEXT, 
	number INTEGER, 
	step INTEGER, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	edited_at DOUBLE, 
	deleted_at DOUBLE, 
	deleted_by TEXT, 
	CONSTRAINT pk_run_comments PRIMARY KEY (id), 
	CONSTRAINT fk_run_comments_author FOREIGN KEY(author) REFERENCES users (name), 
	CONSTRAINT fk_run_comments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_comments" VALUES('comment-1','run-8a5e9199c7','0000000000000000',0,NULL,'ada','why?',1.0,NULL,NULL,NULL);
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-8a5e9199c7','content-1');
CREATE TABLE run_labels (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	person TEXT NOT NULL, 
	score DOUBLE, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_labels PRIMARY KEY (run_id, task, number, person), 
	CONSTRAINT fk_run_labels_person FOREIGN KEY(person) REFERENCES users (name), 
	CONSTRAINT fk_run_labels_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_labels" VALUES('run-8a5e9199c7','0',0,'ada',1.0,'right',1.0);
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-8a5e9199c7',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_origins (
	run_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	entrypoint TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	dataset JSON NOT NULL, 
	config_hash TEXT NOT NULL, 
	recipe JSON NOT NULL, 
	CONSTRAINT pk_run_origins PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_origins_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_origins" VALUES('run-8a5e9199c7','ada/agents','/srv/agents','math','main.py','c0ffee','main','{"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "selected_rows": 4}','abc','{}');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-8a5e9199c7','OWN_KEY',X'01149161E2AEAFE6B1EDE7C3A8D59E3872005E1E3EC045C40B71DE062DC71579F397BA');
CREATE TABLE run_segments (
	run_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	CONSTRAINT pk_run_segments PRIMARY KEY (run_id, number), 
	CONSTRAINT fk_run_segments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_segments" VALUES('run-8a5e9199c7',1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',9);
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, score JSON, suite TEXT, tags JSON, note TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '0' NOT NULL, edited_at DOUBLE, editors JSON, rescored_from TEXT, archived_at DOUBLE, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-ced1eec710','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}, "reused_replies": {}, "saved_usd": null, "rewards": null}',1.79489783351080250742e+09,1.79489783351080250742e+09,1.79489783356550550458e+09,1428,69,'private','{"mean": 1.0, "interval": null, "tasks": 1, "coverage": null}',NULL,NULL,'',0,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('run-8a5e9199c7','hosted','nightly','ada',NULL,'env-5a8a257102','ver-b2137eb439','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79489783362712693216e+09,NULL,NULL,0,0,'private',NULL,NULL,NULL,'',0,NULL,NULL,NULL,NULL);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'01E2E7CB01D4EF6C23C143259155ADB2F91AC656CD0D80EEFC76E9A562F7B81E6C127C23',1.79489782920143985753e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-5a8a257102','sec-f582879a9c');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-f582879a9c','ada',NULL,'SHARED_KEY',X'01A6101800244E1F14FE84F38C7084CFAD695DADDA0D9860707BB68DE74EFB2C27C5','',1.79489783333753871912e+09,1.79489783333753871912e+09);
INSERT INTO "secrets" VALUES('sec-73a3abe906',NULL,'env-5a8a257102','SUMS_KEY',X'0195CC155D4198C7DC5542BBFDC1FBE76F795826BE7004A8720BEC112CA41F05EE512BEC26','of the sums',1.79489783339732384684e+09,1.79489783339732384684e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('oldest_release','0017');
INSERT INTO "server_settings" VALUES('run_policy','readers');
INSERT INTO "server_settings" VALUES('storage','folder');
INSERT INTO "server_settings" VALUES('storage_listed_at','1794897832.9564226');
CREATE TABLE servers (
	id TEXT NOT NULL, 
	server TEXT NOT NULL, 
	url TEXT NOT NULL, 
	version TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	CONSTRAINT pk_servers PRIMARY KEY (id)
);
INSERT INTO "servers" VALUES('process-1','server-1','http://a','0.1.0',1.0,2.0);
CREATE TABLE source_builds (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	files JSON NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_source_builds PRIMARY KEY (source_id, commit_sha, rollout), 
	CONSTRAINT fk_source_builds_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_builds_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "source_builds" VALUES('src-1','c0ffee','math','ver-b2137eb439','["main.py"]','Ada','Begin');
CREATE TABLE source_commits (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE NOT NULL, 
	rollouts JSON NOT NULL, 
	recipes JSON NOT NULL, 
	fetched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_source_commits PRIMARY KEY (source_id, commit_sha), 
	CONSTRAINT fk_source_commits_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_commits" VALUES('src-1','c0ffee','Ada','Begin',1.0,'["math"]','[]',1.0);
CREATE TABLE source_syncs (
	id TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	status TEXT NOT NULL, 
	log JSON NOT NULL, 
	commit_sha TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	ended_at DOUBLE, server TEXT, 
	CONSTRAINT pk_source_syncs PRIMARY KEY (id), 
	CONSTRAINT fk_source_syncs_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_syncs" VALUES('sync-1','src-1','ada','main','done','[]','c0ffee',1.0,2.0,NULL);
CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	has_credentials BOOLEAN NOT NULL, 
	known_hosts TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE, 
	rollouts JSON NOT NULL, 
	problem TEXT NOT NULL, 
	synced_at DOUBLE, 
	created_at DOUBLE NOT NULL, branches JSON DEFAULT '[]' NOT NULL, history JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT fk_sources_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_sources_owner_name UNIQUE (owner, name)
);
INSERT INTO "sources" VALUES('src-1','ada','agents','file:///srv/agents','/srv/agents',X'7365616C6564',0,'','main','c0ffee','Ada','Begin',NULL,'["math"]','',NULL,1.0,'[]','[]');
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-2ab2050e47','robots',1.79489783307413172715e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('1928af44f5','first',X'EFA3447DFD624C0F6623161CFD08F9332C8665E1AD8E9CBAEA823533D1080601','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489782928555727009e+09,NULL,1.79489783292892432216e+09,1.79489783295035505291e+09,NULL);
INSERT INTO "tokens" VALUES('1ee47b3431','user',X'FEFF645A9D3CA9726605BB3332B17C0A84965E9B9A1BA644D219830B784387B7','root',NULL,NULL,'dashboard','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489782930675911909e+09,1.80267382930648303023e+09,NULL,NULL,NULL);
INSERT INTO "tokens" VALUES('645bef73ff','user',X'6793E40A00E4FE298BB29841702207E89BB9BCC302899171704F9EBF48E629B2','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489783295787286754e+09,1.80267383295782709128e+09,1.79489783300416326527e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('855659e927','user',X'EE5EDA34BB2A0E5211C41B9D25F49C4BB9E5CF6743C147826839A8CB0FA0D73C','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79489783302062535282e+09,1.80267383302037930486e+09,1.79489783305205130581e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-8c4b2f4fa6','root',1,1.79489782928110623355e+09,NULL);
INSERT INTO "users" VALUES('usr-45a8e6db43','ada',0,1.79489783302037930485e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-4d68f37d66','env-5a8a257102','REGION','north',1.794897833411794424e+09,1.794897833411794424e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-b2137eb439',0,'sum',X'7B7D');
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, check_details BLOB, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-b2137eb439','env-5a8a257102','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','a82c35639d2322e2344cf3386a751dff851b7c478c27531cc93b396bc7d62b78',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79489783321371078493e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
CREATE INDEX ix_run_origins_repository ON run_origins (repository);
CREATE INDEX ix_run_origins_config_hash ON run_origins (config_hash);
CREATE INDEX ix_browser_sessions_token_id ON browser_sessions (token_id);
CREATE INDEX ix_login_codes_token_id ON login_codes (token_id);
CREATE INDEX ix_runs_suite ON runs (suite);
CREATE INDEX ix_run_labels_person ON run_labels (person);
CREATE INDEX ix_runs_edited_at ON runs (edited_at);
CREATE INDEX ix_run_comments_run_id ON run_comments (run_id, created_at, id);
CREATE INDEX ix_run_comments_author ON run_comments (author);
CREATE INDEX ix_audit_entries_at ON audit_entries (at, id);
CREATE INDEX ix_audit_entries_user ON audit_entries (user, at);
CREATE INDEX ix_dataset_uploads_person ON dataset_uploads (person);
CREATE INDEX ix_source_syncs_source_id ON source_syncs (source_id, started_at);
CREATE INDEX ix_runs_rescored_from ON runs (rescored_from);
CREATE INDEX ix_announcements_at ON announcements (at);
CREATE INDEX ix_files_touched_at ON files (touched_at);
CREATE INDEX ix_run_segments_sha256 ON run_segments (sha256);
COMMIT;
